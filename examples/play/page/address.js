// The address is the program: the name of one that comes with the page, or all of its text. So a
// reload keeps it, a link carries it, and the Back button returns to the program before.

// As the text area has it: a file of Windows ends its lines with two letters.
const plain = (program) => program.replace(/\r\n?/g, "\n").trimEnd();

const programs = JSON.parse(element("programs").textContent)
  .map((each) => ({ ...each, text: plain(each.text) }));

// The last program that did not come with the page, so that the list leads back to it.
let own = "";

// Shows in the list which program this is.
function nameProgram() {
  const known = programs.find((each) => each.text === text.value);
  if (!known && text.value.trim()) own = text.value;
  element("pages").options[programs.length].disabled = !own;
  element("pages").value = known?.name ?? "";
  return known;
}

// Writes the program into the address.
async function keepAddress() {
  const program = text.value, known = nameProgram();
  const address = known ? `#${known.name}` : await linkOf(program);
  if (text.value === program) history.replaceState(null, "", address);
}

async function goToAddress(hash) {
  await keepAddress();
  location.hash = hash;
}

// Reads the program from the address.
async function followAddress() {
  const { hash } = location, known = programs.find((each) => `#${each.name}` === hash);
  let program = known?.text, problem;
  if (linkIn(hash)) {
    program = await programOf(hash).catch((error) => {
      problem = error instanceof RangeError
        ? `The program of the link is too long. Expected ${error.message.replace("more than", "at most")}.`
        : "The link has lost a part. Expected all of it, from #p= to its last letter.";
    });
    // The address has changed again.
    if (hash !== location.hash) return;
  } else if (!known && hash.length > 1) {
    problem = `No program has the name ${hash.slice(1)}. Expected one of the list, or a link with #p=.`;
  }
  hideNotice();
  if (problem) notice(problem);
  if (program === undefined && text.value) return;
  program ??= programs[0].text;
  if (program !== text.value) put(program);
  nameProgram();
}

async function openFile(file) {
  if (file.size > LONGEST_PROGRAM) {
    notice(`${file.name} is too long. Expected at most ${LONGEST_PROGRAM} bytes.`);
  } else {
    goToAddress(await linkOf(plain(await file.text())));
  }
}

function notice(...parts) {
  element("said").replaceChildren(...parts);
  element("notice").hidden = false;
}

function hideNotice() {
  element("notice").hidden = true;
}

// The address of a file is of use to this computer only, but the program in it is to all.
async function copyLink() {
  const address = new URL(location.href);
  [address.search, address.hash] = ["", await linkOf(text.value)];
  const link = make("input");
  link.value = address.href;
  link.readOnly = true;
  link.setAttribute("aria-label", "The link");
  const said = make("span");
  notice(said, link);
  link.select();
  // The clipboard of `navigator` is closed to a page in a frame, and a page of a book is one.
  const isCopied = document.execCommand("copy");
  said.textContent = (isCopied ? "Copied. " : "Copy this link. ") + (location.protocol !== "file:" ? "" :
    "It opens on this computer only. On another one, open the playground and paste the link into the program.");
}

element("link").addEventListener("click", copyLink);
element("close").addEventListener("click", () => {
  hideNotice();
  text.focus();
});
element("open").addEventListener("click", () => element("file").click());
element("file").addEventListener("change", () => {
  const { files: [file] } = element("file");
  if (file) openFile(file);
  // So that the same file can be opened again.
  element("file").value = "";
});

text.addEventListener("paste", (event) => {
  const link = linkIn(event.clipboardData.getData("text"));
  if (!link) return;
  event.preventDefault();
  goToAddress(link);
});
document.addEventListener("dragover", (event) => {
  if (event.dataTransfer.types.includes("Files")) event.preventDefault();
});
document.addEventListener("drop", (event) => {
  const { files: [file] } = event.dataTransfer, link = linkIn(event.dataTransfer.getData("text"));
  if (!file && !link) return;
  event.preventDefault();
  if (file) openFile(file);
  else goToAddress(link);
});

element("pages").append(...programs.map(({ name, title }) => new Option(title, name)), new Option("Your own program", ""));
element("pages").addEventListener("change", async () => {
  const { value } = element("pages");
  // An edit of a moment ago is the last own program.
  nameProgram();
  goToAddress(value ? `#${value}` : await linkOf(own));
});

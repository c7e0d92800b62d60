// The settings are lines of the program, so a link, a file and the command line carry them too.

const SETTINGS = ["seed", "late"];
// A whole program may be indented.
const setting = (name) => new RegExp(`^([^\\S\\n]*)${name} +(\\d+)`, "m");

function readSettings() {
  for (const name of SETTINGS) element(name).value = setting(name).exec(text.value)?.[2] ?? 0;
}

function set(name, value) {
  const line = `${name} ${value}`;
  if (value && setting(name).test(text.value)) {
    text.value = text.value.replace(setting(name), `$1${line}`);
  } else if (value) {
    // Below the comment that the program begins with.
    const lines = text.value.split("\n");
    const first = lines.findIndex((each) => !/^\s*#/.test(each));
    const [indent] = /^\s*/.exec(lines.find((each) => /^\s*[^\s#]/.test(each)) ?? "");
    lines.splice(first < 0 ? lines.length : first, 0, indent + line);
    text.value = lines.join("\n");
  } else {
    text.value = text.value.replace(new RegExp(`${setting(name).source}.*\\n?`, "m"), "");
  }
  edited();
}

for (const name of SETTINGS) {
  const field = element(name);
  field.addEventListener("input", () => {
    const value = Math.floor(field.valueAsNumber);
    if (value >= 0 && value < 1e9) set(name, value);
  });
}

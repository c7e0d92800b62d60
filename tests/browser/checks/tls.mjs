// Opens the page of an HTTPS server that has made its own certificate.

import { same } from "../world.mjs";

export const needs = ["https"];

export default async function tls(tab, { paths }) {
  await tab.send("Security.setIgnoreCertificateErrors", { ignore: true });
  await tab.open(paths.https);
  const { pathname } = new URL(paths.https);
  same(await tab.call(() => document.body.innerText.trim()), `This is ${pathname}, by TLS.`, "the page");
  return paths.https;
}

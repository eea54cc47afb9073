// Texts come as lines of JSON on stdin; for each, its blocks as micromark reads them leave on stdout, as a line of JSON:
// [type, first line, last line, children], lines from 1.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NOTEBOOK_TEST_NODE_MODULES}/`);
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { fromMarkdown } = await load("mdast-util-from-markdown");
const { gfmTable } = await load("micromark-extension-gfm-table");
const { gfmTableFromMarkdown } = await load("mdast-util-gfm-table");

const BLOCKS = new Set([
  "blockquote", "code", "definition", "heading", "html", "list", "listItem", "paragraph", "table", "tableRow", "thematicBreak",
]);
const HOLDERS = new Set(["blockquote", "list", "listItem", "root", "table"]);

function blocks(node) {
  if (!HOLDERS.has(node.type)) return [];
  return node.children
    .filter((child) => BLOCKS.has(child.type))
    .map((child) => [
      child.type === "list" && child.ordered ? "orderedList" : child.type,
      child.position.start.line,
      child.position.end.line,
      blocks(child),
    ]);
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const tree = fromMarkdown(JSON.parse(line), { extensions: [gfmTable()], mdastExtensions: [gfmTableFromMarkdown()] });
  process.stdout.write(`${JSON.stringify(blocks(tree))}\n`);
}

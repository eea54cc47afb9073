// A client by the TypeScript SDK, for test_mcp_others.py: connects, does what an agent program does, and prints what it
// was answered, a line of JSON for each step. Ends once it was notified that the prompt changed.
//
// node mcp_client.mjs stdio COMMAND ARGUMENT…
// node mcp_client.mjs http URL TOKEN

import { createRequire } from "node:module";

const require = createRequire(`${process.env.NOTEBOOK_TEST_NODE_MODULES}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ResourceUpdatedNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");

const [kind, first, ...rest] = process.argv.slice(2);
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: first, args: rest, env: process.env })
    : new StreamableHTTPClientTransport(new URL(first), {
        requestInit: { headers: { Authorization: `Bearer ${rest[0]}` } },
      });

const print = (step, answer) => console.log(JSON.stringify({ step, answer }));

const client = new Client({ name: "typescript", version: "1.0.0" });
const updated = new Promise((resolve) =>
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (sent) => resolve(sent.params.uri)),
);
await client.connect(transport);
print("server", client.getServerVersion().name);
print("instructions", client.getInstructions());
print("tools", (await client.listTools()).tools.map((tool) => tool.name));
print("read", await client.callTool({ name: "notebook_read", arguments: { id: "pages/plan" } }));
print("conflict", await client.callTool({
  name: "notebook_edit",
  arguments: { file: "pages/plan", action: "write", content: "# Mine\n", expected_digest: "0".repeat(64) },
}));
print("missing", await client.readResource({ uri: "notebook://note/none" }).catch((error) => error.data));
print("resources", (await client.listResources()).resources.map((resource) => resource.uri));
print("templates", (await client.listResourceTemplates()).resourceTemplates.map((each) => each.uriTemplate));
print("prompt", (await client.getPrompt({ name: "notebook" })).messages[0].content.text);
print("resource", (await client.readResource({ uri: "notebook://prompt" })).contents[0].text);
await client.subscribeResource({ uri: "notebook://prompt" });
print("subscribed", "notebook://prompt");
print("updated", await updated);
await client.close();

// @modelcontextprotocol/server 2.x: its own handler, which answers JSON where nothing is streamed.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { register, serve } from "./search.mjs";

const handler = createMcpHandler(() => register(new McpServer({ name: "second", version: "1" })));

serve(createServer(toNodeHandler(handler)));

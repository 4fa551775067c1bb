// A parser of server-sent events. The browser's EventSource cannot send a bearer token, so the stream is read by fetch.

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Takes text in pieces cut anywhere and gives the events that are complete. */
export class EventParser {
  private rest = "";

  push(text: string): ServerEvent[] {
    this.rest += text;
    const blocks = this.rest.split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(parsed).filter((event): event is ServerEvent => event !== null);
  }
}

function parsed(block: string): ServerEvent | null {
  const event: ServerEvent = { id: "", event: "message", data: "" };
  let told = false;
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue; // a comment, which keeps the connection alive
    const value = line.slice(colon + 1).replace(/^ /, "");
    const name = line.slice(0, colon);
    if (name === "id") event.id = value;
    else if (name === "event") event.event = value;
    else if (name === "data") {
      event.data += (told ? "\n" : "") + value;
      told = true;
    }
  }
  return told ? event : null;
}

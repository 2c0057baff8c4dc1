// POST /api/COMMAND. Errors are thrown with the words of the command line.
export const call = async (command, flags, signal) => {
  const response = await fetch(`api/${command}`, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(flags), signal});
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? `HTTP status ${response.status}`);
  return answer;
};

// The same with progress(done, all, unit); the command ends when `signal` is aborted or the page is left.
export const stream = async (command, flags, progress, signal) => {
  const response = await fetch(`api/${command}`, {
    method: "POST", headers: {"Content-Type": "application/json", "Accept": "application/x-ndjson"},
    body: JSON.stringify(flags), signal});
  if (!response.ok) throw new Error((await response.json()).error ?? `HTTP status ${response.status}`);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) throw new Error("the server ended the answer early");
    text += decoder.decode(value, {stream: true});
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines.filter((l) => l !== "")) {
      const message = JSON.parse(line);
      if (message.progress) progress(message.progress.done, message.progress.all, message.progress.unit);
      if (message.status === 200) return message.answer;
      if (message.status) throw new Error(message.answer?.error ?? `status ${message.status}`);
    }
  }
};

export const described = (() => {
  const known = new Map();
  return async (name) => {
    if (!known.has(name)) known.set(name, call("describe", {name}).then((answer) => answer.entry));
    known.get(name).catch(() => known.delete(name));
    return known.get(name);
  };
})();

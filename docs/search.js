// Runs the search in a frame if the pages are opened as files, because browsers refuse workers there.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      this.ready = new Promise((resolve) => {
        frame.onload = () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.onload = () => resolve(inside);
          script.src = address;
          inside.document.head.append(script);
        };
      });
      document.documentElement.append(frame);
    }

    async postMessage(data) {
      const inside = await this.ready;
      inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };

// Leaves small words out of a query, because `a` also finds every word that begins with it.
{
  const small = new Set(
    "a an and are be can do for from how i in is it my of on or the to what when where with".split(" "),
  );
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message) {
    if (typeof message.data === "string") {
      const words = message.data.split(/\s+/).filter((word) => !small.has(word.toLowerCase()));
      if (words.some(Boolean)) message = { ...message, data: words.join(" ") };
    }
    return send.call(this, message);
  };
}

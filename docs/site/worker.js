// Search runs in a Worker, and browsers refuse workers to a page that was opened as a file. There, a hidden frame does the
// same: the script runs in it, and messages pass between its window and the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const script = frame.contentDocument.createElement("script")
      script.src = new URL(address, document.baseURI)
      this.inside = frame.contentWindow
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise((done) => { script.onload = done })
      frame.contentDocument.body.appendChild(script)
    }

    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}

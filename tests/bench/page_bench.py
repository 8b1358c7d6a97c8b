#!/usr/bin/env python3
"""Measures a page of 10^6 slices beside one of 10^4 in Chromium without a window: the processor time of all its processes
to the first paint, and for each frame while the view moves with half of the step in it, which is when most is drawn.

    tests/bench/page_bench.py build/tools/plumb [--rounds 5] [--frames 50]

The pages are opened in turns in one browser, and medians are taken. The browser works in real time.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

RANKS = 64
MICROBATCHES = {"10^4": 40, "10^6": 3970}  # 1F1B has 2 (2 ranks - 1) slices for each: what is computed and what is sent

# Two frames later the first one has been painted.
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

# Moves to and fro with half of the step in view, a frame each time. Returns the time of this page's own drawing.
MOVE = """new Promise((done) => {
  const canvas = document.querySelector("canvas");
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  let frame = 0, drawing = 0;
  function move() {
    drawing += frame > 0 ? Number(canvas.dataset.frameMs) : 0;
    if (frame === FRAMES) return done(drawing / FRAMES);
    press(frame % 4 < 2 ? "ArrowRight" : "ArrowLeft");
    frame++;
    requestAnimationFrame(() => requestAnimationFrame(move));
  }
  press("+");
  requestAnimationFrame(() => requestAnimationFrame(move));
})"""


class Browser:
    """Chromium, spoken to by a pair of pipes (Chrome DevTools Protocol: JSON texts, each with a 0 behind it)."""

    def __init__(self, program):
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def take_pipes():
            held = os.dup(to_read), os.dup(to_write)
            os.dup2(held[0], 3)
            os.dup2(held[1], 4)

        self.process = subprocess.Popen([program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"],
                                        preexec_fn=take_pipes, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.text, self.number, self.events = b"", 0, []

    def ask(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.write_end, text):]
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def next_message(self):
        while b"\0" not in self.text:
            piece = os.read(self.read_end, 1 << 16)
            if not piece:
                sys.exit("the browser has ended")
            self.text += piece
        one, self.text = self.text.split(b"\0", 1)
        message = json.loads(one)
        if "method" in message:
            self.events.append((message["method"], message.get("sessionId")))
        return message

    def wait_for(self, event, session):
        while (event, session) not in self.events:
            self.next_message()

    def open(self, address):
        """Returns the session of a new page at an address that has been painted."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable", session)
        self.ask("Page.navigate", session, url=address)
        self.wait_for("Page.loadEventFired", session)
        self.value(session, PAINTED)
        return session

    def value(self, session, promise):
        answer = self.ask("Runtime.evaluate", session, expression=promise, awaitPromise=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{promise}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def processor_seconds(self):
        """Returns the processor time that all processes of the browser have taken."""
        return sum(process["cpuTime"] for process in self.ask("SystemInfo.getProcessInfo")["processInfo"])

    def close(self):
        self.ask("Browser.close")
        self.process.wait()


def page_of(plumb, folder, size, microbatches):
    page = folder / f"{size}.html"
    subprocess.run([plumb, "simulate", "--schedule", "1f1b", "-p", str(RANKS), "-m", str(microbatches), "--costs",
                    "f=1,b=2,c=0.1", "--html", str(page)], check=True, capture_output=True)
    return page


def figures_of(browser, address, frames):
    """Returns the processor seconds to the first paint and of a frame, and the seconds that the page draws a frame."""
    before = browser.processor_seconds()
    session = browser.open(address)
    painted = browser.processor_seconds()
    drawing = browser.value(session, MOVE.replace("FRAMES", str(frames)))
    return painted - before, (browser.processor_seconds() - painted) / frames, drawing * 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plumb")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=50)
    chosen = parser.parse_args()
    program = shutil.which("chromium")
    if program is None:
        sys.exit("there is no chromium: install it")
    with tempfile.TemporaryDirectory() as folder:
        pages = {size: page_of(os.path.abspath(chosen.plumb), pathlib.Path(folder), size, count) for size, count in MICROBATCHES.items()}
        browser = Browser(program)
        browser.open("data:text/html,<!doctype html>")
        rows = {size: [] for size in pages}
        for _ in range(chosen.rounds):
            for size, page in pages.items():
                rows[size].append(figures_of(browser, page.as_uri(), chosen.frames))
        browser.close()
        medians = {size: [statistics.median(column) for column in zip(*of)] for size, of in rows.items()}
        for size, (paint, frame, drawing) in medians.items():
            print(f"{size} slices, {pages[size].stat().st_size / 1e6:.1f} MB: processor time to the first paint {paint:.2f} s, "
                  f"of a frame {1e3 * frame:.1f} ms; the page draws {1e3 * drawing:.1f} ms a frame")
        few, many = medians.values()
        print(f"10^6 against 10^4: first paint {many[0] / few[0]:.1f} times, a frame {many[1] / few[1]:.1f} times")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over the pipe of its DevTools protocol."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


def path():
    """Of the browser; None where there is none."""
    for name in ('chromium', 'chromium-browser', 'google-chrome', 'chrome'):
        found = shutil.which(name)
        if found:
            return found
    return None


class Chromium:
    def __init__(self, width=1400, height=1000):
        self._folder = tempfile.TemporaryDirectory(prefix='chromium.')
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def pipes():  # the browser reads from 3 and writes to 4
            os.dup2(to_read, 13)
            os.dup2(to_write, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)
            for fd in (3, 4):
                os.set_inheritable(fd, True)

        self._process = subprocess.Popen(
            [path(), '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--hide-scrollbars', '--no-first-run', f'--user-data-dir={self._folder.name}',
             f'--window-size={width},{height}', '--remote-debugging-pipe', 'about:blank'],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._id, self.problems = b'', 0, []
        targets = self._call('Target.getTargets')['targetInfos']
        page = next(t for t in targets if t['type'] == 'page')
        self._session = self._call('Target.attachToTarget', targetId=page['targetId'],
                                   flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def _message(self):
        while b'\0' not in self._buffer:
            data = os.read(self._read, 1 << 16)
            if not data:
                raise RuntimeError('the browser has ended')
            self._buffer += data
        text, self._buffer = self._buffer.split(b'\0', 1)
        return json.loads(text)

    def _note(self, message):
        method, parameters = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            self.problems.append(json.dumps(parameters['exceptionDetails'])[:600])
        elif method == 'Log.entryAdded' and parameters['entry']['level'] == 'error':
            self.problems.append(parameters['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            url = parameters['request']['url']
            if not url.startswith(('file:', 'data:', 'about:')):
                self.problems.append(f'it asks for {url}')

    def _call(self, method, session=None, **parameters):
        self._id += 1
        message = {'id': self._id, 'method': method, 'params': parameters}
        if session:
            message['sessionId'] = session
        os.write(self._write, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._message()
            self._note(answer)
            if answer.get('id') == self._id:
                if 'error' in answer:
                    raise RuntimeError(f'{method}: {answer["error"]}')
                return answer['result']

    def call(self, method, **parameters):
        return self._call(method, self._session, **parameters)

    def open(self, file):
        self.call('Page.navigate', url='file://' + os.path.abspath(file))
        self.evaluate('new Promise(r => document.readyState === "complete" ? r() : '
                      'addEventListener("load", () => r()))')

    def evaluate(self, expression):
        """The value of JavaScript, awaited."""
        result = self.call('Runtime.evaluate', expression=expression, awaitPromise=True,
                           returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(json.dumps(result['exceptionDetails'])[:800])
        return result['result'].get('value')

    def click(self, selector):
        """As a mouse does, at the middle of the element."""
        at = self.evaluate(
            f'(() => {{ const e = document.querySelector({json.dumps(selector)});'
            ' e.scrollIntoView({block: "center"}); const b = e.getBoundingClientRect();'
            ' return [b.x + b.width / 2, b.y + b.height / 2]; })()')
        for kind in ('mousePressed', 'mouseReleased'):
            self.call('Input.dispatchMouseEvent', type=kind, x=at[0], y=at[1], button='left',
                      clickCount=1)

    def screenshot(self, file, whole=True):
        data = self.call('Page.captureScreenshot', captureBeyondViewport=whole)['data']
        with open(file, 'wb') as f:
            f.write(base64.b64decode(data))

    def close(self):
        try:
            self._call('Browser.close')
        except (RuntimeError, OSError):
            pass
        self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

/** The terminal (L4), loaded when it is first shown: xterm over the channels of `exec`. Upstream: k8s.io/streaming remotecommand, protocol v5. */
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { channels, execProtocol, failureOf } from '../../model/execChannels.ts'

export interface Shell {
  close(): void
}

/** @param open a WebSocket with these protocols @param onEnd gets what the server says about the end */
export function openTerminal(parent: HTMLElement, open: (protocols: readonly string[]) => WebSocket, onEnd: (text: string) => void): Shell {
  const style = getComputedStyle(parent)
  const theme = { background: style.getPropertyValue('--terminal').trim() || '#101418', foreground: '#e8edf2' }
  // Links of a program's output are text: nothing is opened.
  const terminal = new Terminal({ fontSize: 13, cursorBlink: true, scrollback: 5_000, theme, screenReaderMode: true, linkHandler: { activate: () => {} } })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(parent)
  const socket = open([execProtocol])
  socket.binaryType = 'arraybuffer'
  /** What is typed before the connection is there. */
  const early: Uint8Array<ArrayBuffer>[] = []
  const send = (channel: number, bytes: Uint8Array) => {
    const message = new Uint8Array([channel, ...bytes])
    if (socket.readyState === WebSocket.OPEN) socket.send(message)
    else if (socket.readyState === WebSocket.CONNECTING) early.push(message)
  }
  const encoder = new TextEncoder()
  const resize = () => {
    fit.fit()
    send(channels.resize, encoder.encode(JSON.stringify({ Width: terminal.cols, Height: terminal.rows })))
  }
  const observer = new ResizeObserver(resize)
  let ending = 'The connection has ended.'
  socket.onopen = () => {
    for (const message of early.splice(0)) socket.send(message)
    observer.observe(parent)
    terminal.focus()
  }
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const [channel, ...bytes] = new Uint8Array(data)
    if (channel === channels.stdout || channel === channels.stderr) terminal.write(new Uint8Array(bytes))
    else if (channel === channels.error) ending = failureOf(new TextDecoder().decode(new Uint8Array(bytes))) || 'The shell has ended.'
  }
  socket.onclose = () => {
    observer.disconnect()
    onEnd(ending)
  }
  terminal.onData((text) => send(channels.stdin, encoder.encode(text)))
  return {
    close: () => {
      socket.onclose = null
      socket.close()
      observer.disconnect()
      terminal.dispose()
    },
  }
}

/** Watches: each event is one line of JSON. */
import type { Http2Connection } from './http2Connection.ts'

/** Opens a watch and hands over each event's text. Resolves when the server has accepted the watch. */
export function watchLines(connection: Http2Connection, path: string, onLine: (line: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let rest = ''
    const ended = connection.request({
      method: 'GET',
      path,
      onStatus: (status) => (status === 200 ? resolve() : reject(new Error(`watch ${path}: ${status}`))),
      onData: (piece) => {
        const lines = (rest + piece.toString('latin1')).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) onLine(line)
      },
    })
    // The connection's end ends the watch; that is how watches are closed here.
    ended.catch(reject)
  })
}

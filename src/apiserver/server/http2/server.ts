/**
 * HTTP/2 for the connections of a listener (L3), implemented here: node's library takes more than half of a GET's time, for objects per stream and
 * calls between JavaScript and C++. Here the answers of one turn of the event loop are written together.
 */
import type { TLSSocket } from 'node:tls'
import type { ExchangeDeps } from '../exchange.ts'
import type { HeaderMap } from '../respond.ts'
import { Http2Connection, type Shared } from './connection.ts'
import { HpackEncoder } from './hpack/encoder.ts'
import { Slab } from './slab.ts'
import { Turns } from './turns.ts'

/** About a millisecond of reads: many more than the seats of a priority level, so that flow control queues or refuses the rest. */
const mostPerTurn = 64

export interface Http2Server {
  /** Takes over a connection that negotiated HTTP/2. */
  accept(socket: TLSSocket): void
  /** Sends GOAWAY on all connections; open streams are finished. */
  endGracefully(): void
}

export interface Http2Options {
  /** A connection without requests is closed after that time. */
  readonly idleMs: number
  /** Concurrent streams of one connection. */
  readonly maxStreams: number
}

export function http2Server(deps: ExchangeDeps, options: Http2Options): Http2Server {
  const connections = new Set<Http2Connection>()
  const headers = headerBlocks(() => deps.clock.now())
  const turns = new Turns(mostPerTurn, () => deps.beforeAnswers?.())
  const shared: Shared = { deps, ...options, slab: new Slab(), turns, block: headers }
  return {
    accept(socket) {
      const connection = new Http2Connection(socket, shared)
      connections.add(connection)
      socket.on('close', () => connections.delete(connection))
    },
    endGracefully() {
      for (const connection of connections) connection.endGracefully()
    },
  }
}

/** Header blocks of answers, with their date, which is the same for a second. */
function headerBlocks(now: () => number): (status: number, headers: HeaderMap) => string {
  const encoder = new HpackEncoder()
  let second = -1
  let date = ''
  const dateField = () => {
    const ms = now()
    const current = Math.floor(ms / 1000)
    if (current !== second) {
      second = current
      date = new Date(ms).toUTCString()
    }
    return encoder.field('date', date)
  }
  return (status, headers) => {
    let block = encoder.status(status)
    for (const name in headers) {
      const value = headers[name]
      if (typeof value === 'string') block += encoder.field(name, value)
      else if (value !== undefined) for (const one of value) block += encoder.field(name, one)
    }
    return headers.date === undefined ? block + dateField() : block
  }
}

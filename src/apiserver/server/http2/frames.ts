/**
 * The frames of HTTP/2 (L3): their type numbers, and the encoding of those that a server sends, other than HEADERS and DATA. Pure.
 * Upstream: RFC 9113 sections 4.1 and 6.
 */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flag = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const

export const setting = { headerTableSize: 1, enablePush: 2, maxConcurrentStreams: 3, initialWindowSize: 4, maxFrameSize: 5, maxHeaderListSize: 6 } as const

export const frameHeadBytes = 9
/** The largest payload of a received frame; this server never raises it by SETTINGS. */
export const defaultFrameBytes = 16_384
export const defaultWindow = 65_535
export const largestWindow = 0x7fff_ffff
export const preface: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Writes the nine bytes at the beginning of every frame. */
export function writeFrameHead(target: Uint8Array, at: number, length: number, type: number, flags: number, stream: number): void {
  target[at] = length >>> 16
  target[at + 1] = length >>> 8
  target[at + 2] = length
  target[at + 3] = type
  target[at + 4] = flags
  target[at + 5] = stream >>> 24
  target[at + 6] = stream >>> 16
  target[at + 7] = stream >>> 8
  target[at + 8] = stream
}

function frame(type: number, flags: number, stream: number, payloadBytes: number): Buffer {
  const made = Buffer.alloc(frameHeadBytes + payloadBytes)
  writeFrameHead(made, 0, payloadBytes, type, flags, stream)
  return made
}

export const settingsAck: Buffer = frame(frameType.settings, flag.ack, 0, 0)

/** @param values pairs of a setting's number and its value */
export function settingsFrame(values: readonly (readonly [number, number])[]): Buffer {
  const made = frame(frameType.settings, 0, 0, values.length * 6)
  for (const [index, [id, value]] of values.entries()) {
    made.writeUInt16BE(id, frameHeadBytes + index * 6)
    made.writeUInt32BE(value, frameHeadBytes + index * 6 + 2)
  }
  return made
}

/** @param payload the eight bytes of the ping */
export function pingAck(payload: Uint8Array): Buffer {
  const made = frame(frameType.ping, flag.ack, 0, 8)
  made.set(payload, frameHeadBytes)
  return made
}

export function goawayFrame(lastStream: number, code: number): Buffer {
  const made = frame(frameType.goaway, 0, 0, 8)
  made.writeUInt32BE(lastStream, frameHeadBytes)
  made.writeUInt32BE(code, frameHeadBytes + 4)
  return made
}

export function windowUpdateFrame(stream: number, increment: number): Buffer {
  const made = frame(frameType.windowUpdate, 0, stream, 4)
  made.writeUInt32BE(increment, frameHeadBytes)
  return made
}

export function rstStreamFrame(stream: number, code: number): Buffer {
  const made = frame(frameType.rstStream, 0, stream, 4)
  made.writeUInt32BE(code, frameHeadBytes)
  return made
}

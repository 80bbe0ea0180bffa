/**
 * Checks the format of frames (L3): lengths, padding, stream ids, settings. Pure.
 * Upstream: RFC 9113 sections 6.1 to 6.10.
 */
import { ConnectionError, errorCode } from './errors.ts'
import { flag, frameType, largestWindow, setting } from './frames.ts'

/** Fixed payload lengths, by frame type. */
const lengths: ReadonlyMap<number, number> = new Map([
  [frameType.rstStream, 4],
  [frameType.ping, 8],
  [frameType.windowUpdate, 4],
])
/** Frames of one stream, and of the connection; a window update may be either. */
const ofStream: ReadonlySet<number> = new Set([frameType.data, frameType.headers, frameType.priority, frameType.rstStream, frameType.continuation])
const ofConnection: ReadonlySet<number> = new Set([frameType.settings, frameType.ping, frameType.goaway])

/** @throws ConnectionError */
export function checkFrame(type: number, flags: number, stream: number, length: number): void {
  if (stream === 0 ? ofStream.has(type) : ofConnection.has(type)) throw protocolError(`a frame of type ${type} on stream ${stream}`)
  const wanted = lengths.get(type)
  const isWrong = wanted === undefined ? isWrongLength(type, flags, length) : length !== wanted
  if (isWrong) throw new ConnectionError(errorCode.frameSizeError, `a frame of type ${type} with ${length} bytes`)
}

function isWrongLength(type: number, flags: number, length: number): boolean {
  if (type === frameType.settings) return length % 6 !== 0 || (length > 0 && (flags & flag.ack) !== 0)
  return type === frameType.goaway && length < 8
}

/** Where the payload of DATA or HEADERS ends, and its padding begins. @throws ConnectionError */
export function endOfPadded(bytes: Buffer, start: number, end: number): number {
  const padding = start < end ? bytes[start]! : end
  if (start + 1 + padding > end) throw protocolError('more padding than payload')
  return end - padding
}

/** The settings of a peer that this server uses. */
export interface PeerSettings {
  frameBytes?: number
  windowBytes?: number
}

/** @throws ConnectionError for values that are not allowed */
export function readSettings(bytes: Buffer, start: number, end: number): PeerSettings {
  const settings: PeerSettings = {}
  for (let at = start; at < end; at += 6) {
    const id = bytes.readUInt16BE(at)
    const value = bytes.readUInt32BE(at + 2)
    if (id === setting.enablePush && value > 1) throw protocolError('a wrong value of ENABLE_PUSH')
    if (id === setting.initialWindowSize) {
      if (value > largestWindow) throw new ConnectionError(errorCode.flowControlError, 'a window that is too large')
      settings.windowBytes = value
    }
    if (id === setting.maxFrameSize) {
      if (value < 16_384 || value > 0xff_ffff) throw protocolError('a wrong value of MAX_FRAME_SIZE')
      settings.frameBytes = value
    }
  }
  return settings
}

export function protocolError(message: string): ConnectionError {
  return new ConnectionError(errorCode.protocolError, message)
}

import assert from 'node:assert/strict'
import test from 'node:test'
import { seededRandom } from '#base/random'
import { ConnectionError, errorCode } from './errors.ts'
import { FrameReader, type FrameSink } from './frameReader.ts'
import { frameHeadBytes, preface, writeFrameHead } from './frames.ts'

type Seen = readonly [type: number, flags: number, stream: number, payload: string]

function collect(most = Number.POSITIVE_INFINITY): { seen: Seen[]; sink: FrameSink } {
  const seen: Seen[] = []
  const frame: FrameSink['frame'] = (type, flags, stream, bytes, start, end) => {
    seen.push([type, flags, stream, bytes.toString('latin1', start, end)])
    return seen.length < most
  }
  return { seen, sink: { frame, isFull: false } }
}

function encode([type, flags, stream, payload]: Seen): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes + payload.length)
  writeFrameHead(bytes, 0, payload.length, type, flags, stream)
  bytes.write(payload, frameHeadBytes, 'latin1')
  return bytes
}

const code = (wanted: number) => (error: unknown) => error instanceof ConnectionError && error.code === wanted

test('a full sink gets the remaining frames with the next piece, even if it is empty', () => {
  const frames = Array.from({ length: 5 }, (_, index): Seen => [index, 0, 1, 'abc'])
  const seen: Seen[] = []
  const sink = {
    isFull: false,
    frame: (...[type, flags, stream, bytes, start, end]: Parameters<FrameSink['frame']>) => {
      seen.push([type, flags, stream, bytes.toString('latin1', start, end)])
      sink.isFull = seen.length % 2 === 0
      return true
    },
  }
  const reader = new FrameReader()
  const counts: number[] = []
  for (const piece of [Buffer.concat([preface, ...frames.map(encode)]), Buffer.alloc(0), encode([5, 0, 1, 'd'])]) {
    sink.isFull = false
    reader.push(piece, sink)
    counts.push(seen.length)
  }
  assert.deepEqual(
    [counts, seen],
    [
      [2, 4, 6],
      [...frames, [5, 0, 1, 'd']],
    ],
  )
})

test('frames are the same, however their bytes are split', () => {
  const random = seededRandom(9)
  for (let round = 0; round < 300; round++) {
    const frames = Array.from(
      { length: random.int(20) },
      (): Seen => [random.int(256), random.int(256), random.int(2 ** 31), 'p'.repeat(random.int(random.int(5) === 0 ? 16_385 : 40))],
    )
    const bytes = Buffer.concat([preface, ...frames.map(encode)])
    const { seen, sink } = collect()
    const reader = new FrameReader()
    const most = [1, 10, 100, 30_000][random.int(4)] ?? 1
    for (let at = 0; at < bytes.length; ) {
      const length = 1 + random.int(most)
      reader.push(bytes.subarray(at, at + length), sink)
      at += length
    }
    assert.deepEqual(seen, frames)
  }
})

test('the reserved bit of a stream id is ignored', () => {
  const { seen, sink } = collect()
  new FrameReader().push(Buffer.concat([preface, Buffer.from([0, 0, 0, 6, 0, 0xff, 0xff, 0xff, 0xff])]), sink)
  assert.deepEqual(seen, [[6, 0, 0x7fff_ffff, '']])
})

test('a wrong preface fails at its first wrong byte, and a frame that is too large at its header', () => {
  assert.throws(() => new FrameReader().push(Buffer.from('G'), collect().sink), code(errorCode.protocolError))
  const reader = new FrameReader()
  reader.push(preface.subarray(0, 20), collect().sink)
  assert.throws(() => reader.push(Buffer.from('SMSM'), collect().sink), code(errorCode.protocolError))
  const large = Buffer.concat([preface, Buffer.from([0, 0x40, 1, 0, 0, 0, 0, 0, 1])])
  assert.throws(() => new FrameReader().push(large, collect().sink), code(errorCode.frameSizeError))
})

test('the reader delivers no frame after the sink stops it', () => {
  const { seen, sink } = collect(2)
  const frames: Seen[] = Array.from({ length: 5 }, (_, stream) => [0, 0, stream, 'x'])
  new FrameReader().push(Buffer.concat([preface, ...frames.map(encode)]), sink)
  assert.deepEqual(seen, frames.slice(0, 2))
})

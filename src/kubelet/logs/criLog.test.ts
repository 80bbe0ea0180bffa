import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readlinkSync } from 'node:fs'
import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Clock } from '#base/clock'
import { VirtualClock } from '#base/virtualClock'
import type { LogOptions } from '../core/runtimeService.ts'
import { type FollowContext, parseCriLine, readLog } from './criLog.ts'

const line = (text: string, { stream = 'stdout', tag = 'F', second = 0 } = {}) =>
  `2026-01-01T00:00:${String(second).padStart(2, '0')}.5Z ${stream} ${tag} ${text}\n`
const content = [
  line('one'),
  line('two', { stream: 'stderr', second: 1 }),
  line('par', { tag: 'P', second: 2 }),
  line('tial', { second: 2 }),
  line('', { second: 3 }),
  line('last', { second: 4 }),
].join('')

async function withLog(text: string, run: (path: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'log-'))
  try {
    await writeFile(join(directory, '0.log'), text)
    await run(join(directory, '0.log'))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const never = { clock: new VirtualClock(), isRunning: async () => false }
async function read(path: string, options: Partial<LogOptions>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of readLog(path, { follow: false, timestamps: false, ...options }, never, new AbortController().signal)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const cases: { name: string; options: Partial<LogOptions>; want: string }[] = [
  { name: 'everything, partial lines joined', options: {}, want: 'one\ntwo\npartial\n\nlast\n' },
  { name: 'the last two lines', options: { tailLines: 2 }, want: '\nlast\n' },
  { name: 'no lines', options: { tailLines: 0 }, want: '' },
  { name: 'more lines than there are', options: { tailLines: 100 }, want: 'one\ntwo\npartial\n\nlast\n' },
  {
    name: 'timestamps once per whole line',
    options: { timestamps: true, sinceMs: Date.UTC(2026, 0, 1, 0, 0, 2) },
    want: '2026-01-01T00:00:02.5Z partial\n2026-01-01T00:00:03.5Z \n2026-01-01T00:00:04.5Z last\n',
  },
  { name: 'since', options: { sinceMs: Date.UTC(2026, 0, 1, 0, 0, 4) }, want: 'last\n' },
  { name: 'so many bytes', options: { limitBytes: 6 }, want: 'one\ntw' },
  { name: 'one stream', options: { stream: 'Stderr' }, want: 'two\n' },
]
for (const c of cases) test(`KUB-25 ${c.name}`, () => withLog(content, async (path) => assert.equal(await read(path, c.options), c.want)))

test('lines that are not in CRI’s format are skipped', () => {
  assert.equal(parseCriLine(Buffer.from('garbage')), undefined)
  assert.deepEqual(parseCriLine(Buffer.from('t stdout F ')), { timestamp: 't', stream: 'stdout', partial: false, content: Buffer.alloc(0) })
})

/** Each poll of the reader lets the next thing happen to the file. */
function steppingClock(steps: (() => Promise<void>)[]): Clock {
  const clock = new VirtualClock()
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    timer: clock.timer.bind(clock),
    sleep: async () => steps.shift()?.(),
    turn: () => clock.turn(),
  }
}

test('KUB-25 following continues through rotation until the container has stopped', () =>
  withLog(line('before'), async (path) => {
    let running = true
    const steps = [
      async () => appendFile(path, line('more')),
      async () => {
        await rename(path, `${path}.1`)
        await writeFile(path, line('rotated'))
      },
      async () => {
        running = false
      },
    ]
    const chunks: Uint8Array[] = []
    const context = { clock: steppingClock(steps), isRunning: async () => running }
    for await (const chunk of readLog(path, { follow: true, timestamps: false }, context, new AbortController().signal)) chunks.push(chunk)
    assert.equal(Buffer.concat(chunks).toString(), 'before\nmore\nrotated\n')
  }))

const openUnder = (directory: string) =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(directory)
    } catch {
      // The descriptor of this reading itself.
      return false
    }
  }).length

async function allClosed(path: string): Promise<void> {
  for (let turn = 0; turn < 1_000 && openUnder(dirname(path)) > 0; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(openUnder(dirname(path)), 0)
}

/** A log whose reader is two rotations behind: the file in between was compressed, and is large enough to be read in parts. */
async function withCompressed(run: (path: string, context: FollowContext) => Promise<void>, changed = (compressed: Buffer) => compressed): Promise<void> {
  await withLog(line('before'), async (path) => {
    const steps = [
      async () => {
        await rename(path, `${path}.20260101-000000`)
        const between = Array.from({ length: 20_000 }, (_, index) => line(`between ${index} ${randomBytes(30).toString('hex')}`)).join('')
        await writeFile(`${path}.20260102-000000.gz`, changed(gzipSync(between)))
        await writeFile(path, line('after'))
      },
    ]
    await run(path, { clock: steppingClock(steps), isRunning: async () => true })
  })
}

const onLinux = { skip: process.platform === 'linux' ? false : 'counts the descriptors in /proc' }

test('KUB-25 the compressed file is closed, its reader leaves in the middle of it', onLinux, () =>
  withCompressed(async (path, context) => {
    let read = 0
    for await (const chunk of readLog(path, { follow: true, timestamps: false }, context, new AbortController().signal)) {
      read += chunk.length
      if (read > 10_000) break
    }
    assert.ok(read > 10_000 && read < 1_000_000)
    await allClosed(path)
  }),
)

test('KUB-25 the compressed file is closed, it is damaged', onLinux, () =>
  withCompressed(
    async (path, context) => {
      const reading = async () => {
        for await (const _ of readLog(path, { follow: true, timestamps: false }, context, new AbortController().signal));
      }
      await assert.rejects(reading(), { code: 'Z_DATA_ERROR' })
      await allClosed(path)
    },
    (compressed) => {
      compressed.fill(0xff, 50_000, 60_000)
      return compressed
    },
  ),
)

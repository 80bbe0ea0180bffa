import assert from 'node:assert/strict'
import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { LogOptions } from '../core/runtimeService.ts'
import { parseCriLine, readLog } from './criLog.ts'

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
    const clock = new VirtualClock()
    // Each poll of the reader lets the next thing happen to the file.
    const stepping = {
      now: () => clock.now(),
      monotonicMs: () => clock.monotonicMs(),
      timer: clock.timer.bind(clock),
      sleep: async () => steps.shift()?.(),
      turn: () => clock.turn(),
    }
    const chunks: Uint8Array[] = []
    const context = { clock: stepping, isRunning: async () => running }
    for await (const chunk of readLog(path, { follow: true, timestamps: false }, context, new AbortController().signal)) chunks.push(chunk)
    assert.equal(Buffer.concat(chunks).toString(), 'before\nmore\nrotated\n')
  }))

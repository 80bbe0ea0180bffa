import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { VirtualClock } from '#base/virtualClock'
import { openRotatingFile, type RotatingFileOptions } from './rotatingFile.ts'

const options: RotatingFileOptions = { maxBytes: 10, maxAgeDays: 0, maxBackups: 0, compress: false, blocking: true }

function setUp(t: TestContext) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-audit-'))
  t.after(() => fs.rmSync(folder, { recursive: true }))
  const clock = new VirtualClock('2026-01-02T03:04:05Z')
  const contents = () => Object.fromEntries(fs.readdirSync(folder).map((name) => [name, fs.readFileSync(path.join(folder, name))]))
  const shown = () => Object.fromEntries(Object.entries(contents()).map(([name, bytes]) => [name, bytes.toString()]))
  return { file: path.join(folder, 'audit.log'), clock, contents, shown }
}

test('API-21 a file that would grow too large is moved aside, named by the time; only its owner may read it', async (t) => {
  const { file, clock, shown } = setUp(t)
  fs.writeFileSync(file, 'before\n')
  const writer = openRotatingFile(file, options, clock)
  await writer.write('one\n')
  await clock.advance(1_234)
  await writer.write('two\n')
  await writer.write('three\n')
  await writer.close()
  assert.deepEqual(
    shown(),
    { 'audit-2026-01-02T03-04-05.000.log': 'before\n', 'audit-2026-01-02T03-04-06.234.log': 'one\ntwo\n', 'audit.log': 'three\n' },
    `${Object.keys(shown())}`,
  )
  assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  assert.throws(() => openRotatingFile(file, options, clock).write('longer than the file may be'), /write length 27 exceeds maximum file size 10/)
})

for (const blocking of [true, false]) {
  test(`API-21 of lines that are written together, each goes where there is room for it; ${blocking ? 'waiting' : 'not waiting'} for the disk`, async (t) => {
    const { file, clock, shown } = setUp(t)
    const writer = openRotatingFile(file, { ...options, blocking }, clock)
    await writer.write('1111\n')
    await clock.advance(1)
    await writer.write('222\n33333\n444\n')
    await clock.advance(1)
    await writer.write('5\n')
    await writer.close()
    const [first, second, ...rest] = Object.values(shown())
    assert.deepEqual([first, second, rest], ['1111\n222\n', '33333\n444\n', ['5\n']])
  })
}

test('API-21 old files go by number and by age', async (t) => {
  const { file, clock, shown } = setUp(t)
  const writer = openRotatingFile(file, { ...options, maxBackups: 2, maxAgeDays: 2 }, clock)
  for (const text of ['111111\n', '222222\n', '333333\n']) {
    await writer.write(text)
    await clock.advance(86_400_000)
  }
  await writer.write('444444\n')
  await clock.advance(2 * 86_400_000 + 1)
  await writer.write('555555\n')
  await writer.close()
  assert.deepEqual(Object.values(shown()), ['444444\n', '555555\n'])
})

test('API-21 files that were moved aside are compressed on demand; writing need not wait', async (t) => {
  const { file, clock, contents } = setUp(t)
  const writer = openRotatingFile(file, { ...options, compress: true, blocking: false }, clock)
  await writer.write('111111\n')
  await writer.write('222222\n')
  await writer.close()
  const [[name = '', bytes] = []] = Object.entries(contents())
  assert.equal(name, 'audit-2026-01-02T03-04-05.000.log.gz')
  assert.equal(gunzipSync(bytes ?? Buffer.alloc(0)).toString(), '111111\n')
})

import assert from 'node:assert/strict'
import fs, { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { createDirectoryMeasure, directoryUsage } from './directoryUsage.ts'

function inTemporary(run: (directory: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), 'usage-'))
    try {
      await run(directory)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

test(
  'KUB-19 a directory is added up: files once, links as themselves, what is below',
  inTemporary(async (directory) => {
    mkdirSync(join(directory, 'a/b'), { recursive: true })
    writeFileSync(join(directory, 'a/b/file'), Buffer.alloc(8192, 1))
    linkSync(join(directory, 'a/b/file'), join(directory, 'again'))
    symlinkSync('/', join(directory, 'link'))
    const { bytes, inodes } = await directoryUsage(directory)
    assert.ok(bytes >= 8192 && bytes < 8192 + 6 * 4096 + 1, String(bytes))
    assert.equal(inodes, 5)
    assert.deepEqual(await directoryUsage(join(directory, 'gone')), { bytes: 0, inodes: 0 })
    assert.equal((await directoryUsage(join(directory, 'again'))).inodes, 1)
  }),
)

const stepsOfTurn = 1024

/**
 * Runs walks with a clock on which 1024 steps take the 8 ms of a turn, however busy the host is.
 * @returns what `work` returns, the turns of the event loop meanwhile, and the most steps of one of them
 */
async function countingTurns<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly turns: number; readonly mostSteps: number }> {
  let [steps, turns, mostSteps] = [0, 0, 0]
  let nowMs = 0
  const clock = mock.method(performance, 'now', () => {
    steps++
    nowMs += 8 / stepsOfTurn
    return nowMs
  })
  const onTurn = () => {
    turns++
    mostSteps = Math.max(mostSteps, steps)
    steps = 0
    next = setImmediate(onTurn)
  }
  let next = setImmediate(onTurn)
  try {
    const result = await work()
    return { result, turns, mostSteps }
  } finally {
    clearImmediate(next)
    clock.mock.restore()
  }
}

test(
  'KUB-19 a directory of 140,000 entries is added up, and others get turns meanwhile',
  inTemporary(async (directory) => {
    const entries = 140_000
    for (let i = 0; i < entries; i++) symlinkSync('x', join(directory, String(i)))
    const { result, turns, mostSteps } = await countingTurns(() => directoryUsage(directory))
    assert.equal(result.inodes, entries + 1)
    assert.ok(turns >= entries / stepsOfTurn, `${turns} turns`)
    assert.ok(mostSteps <= stepsOfTurn + 1, `a turn of ${mostSteps} steps`)
  }),
)

for (const code of ['EACCES', 'ESTALE', 'EIO', 'ENOTDIR', 'ELOOP']) {
  test(
    `KUB-19 an entry that fails with ${code} counts nothing, and the others are added up`,
    inTemporary(async (directory) => {
      for (const name of ['a', 'b', 'c']) mkdirSync(join(directory, name))
      for (const name of ['a/file', 'b/file', 'c/file']) writeFileSync(join(directory, name), 'x')
      const fails = (path: unknown) => {
        if (path === join(directory, 'b/file')) throw Object.assign(new Error(`${code}: refused`), { code })
      }
      const { lstatSync } = fs
      const refusing = mock.method(fs, 'lstatSync', (path: string, options: object) => {
        fails(path)
        return lstatSync(path, options)
      })
      syncBuiltinESMExports()
      try {
        assert.equal((await directoryUsage(directory)).inodes, 6)
      } finally {
        refusing.mock.restore()
        syncBuiltinESMExports()
      }
    }),
  )
}

test(
  'KUB-19 a directory whose entries cannot be read counts itself, and the others are added up',
  inTemporary(async (directory) => {
    for (const name of ['a', 'b', 'c']) mkdirSync(join(directory, name))
    for (const name of ['a/file', 'b/file', 'c/file']) writeFileSync(join(directory, name), 'x')
    const { opendirSync } = fs
    const failing = mock.method(fs, 'opendirSync', (path: string) => {
      const opened = opendirSync(path)
      if (path === join(directory, 'b')) {
        opened.readSync = () => {
          throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
        }
      }
      return opened
    })
    syncBuiltinESMExports()
    try {
      assert.equal((await directoryUsage(directory)).inodes, 6)
    } finally {
      failing.mock.restore()
      syncBuiltinESMExports()
    }
  }),
)

test(
  'KUB-19 two hundred walks at once share the turns of the event loop: none is longer than one walk makes it',
  inTemporary(async (directory) => {
    const [walks, entries] = [200, 1600]
    mkdirSync(join(directory, 'a/b/c'), { recursive: true })
    for (let i = 0; i < entries; i++) symlinkSync('x', join(directory, 'a/b/c', String(i)))
    const measure = createDirectoryMeasure()
    const { result, mostSteps } = await countingTurns(() => Promise.all(Array.from({ length: walks }, () => measure(directory))))
    assert.deepEqual(new Set(result.map(({ inodes }) => inodes)), new Set([entries + 4]))
    assert.ok(mostSteps <= stepsOfTurn + 1, `a turn of ${mostSteps} steps`)
  }),
)

/** No list is spread into Math.min or Math.max: from about 100,000 items on that throws. base/extremes has what takes any number of them. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')
const spread = /\bMath\.(?:min|max)\((?:[^()]|\([^()]*\))*?\.\.\./

const offends = (text: string) => text.split('\n').flatMap((line, at) => (spread.test(line) ? [at + 1] : []))

test('ARC-10 the check for lists spread into Math.min and Math.max finds them, and nothing else', () => {
  for (const line of ['Math.max(...list)', 'Math.min(0, ...waits)', 'a + Math.max(f(x), ...list.map(g))']) assert.deepEqual(offends(line), [1], line)
  for (const line of ['Math.max(a, b)', 'Math.min(f(x), 2), [...list]', 'const { max } = Math']) assert.deepEqual(offends(line), [], line)
})

test('ARC-10 no source file spreads a list into Math.min or Math.max', () => {
  const files = fs.readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => /\.ts$/.test(file) && !/\.test\.ts$/.test(file))
  assert.ok(files.length > 1_000, `${files.length} files`)
  const found = files.flatMap((file) => offends(fs.readFileSync(path.join(root, 'src', file), 'utf8')).map((line) => `${file}:${line}`))
  assert.deepEqual(found, [])
})

import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { readResizes } from './upgrade.ts'

async function sizesOf(...chunks: readonly string[]): Promise<string[]> {
  const sizes: string[] = []
  for await (const { width, height } of readResizes(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))) sizes.push(`${width}x${height}`)
  return sizes
}

test('KUB-18 terminal sizes are read however they are cut, up to the first text that is no size in JSON', async () => {
  assert.deepEqual(await sizesOf('{"Width":80,"Hei', 'ght":24}\n{"Width":1,"Height":2}'), ['80x24', '1x2'])
  assert.deepEqual(await sizesOf('{"Width":80,"Height":24}}', '{"Width":1,"Height":2}'), ['80x24'])
  assert.deepEqual(await sizesOf('x'.repeat(5_000), '{"Width":1,"Height":2}'), [])
})

test('KUB-18 a flood of texts that are no terminal sizes costs one error, not one for each byte', async () => {
  const startedMs = performance.now()
  assert.deepEqual(await sizesOf(...Array.from({ length: 30 }, () => '}'.repeat(64 * 1024))), [])
  assert.ok(performance.now() - startedMs < 1_000, 'it took a second')
})

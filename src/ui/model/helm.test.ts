import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { contentOf, releasesOf } from './helm.ts'

const twice = (bytes: Buffer) => Buffer.from(bytes.toString('base64')).toString('base64')
const release = {
  info: { description: 'Upgrade complete', notes: 'Hello', last_deployed: '2026-01-01T00:00:00Z' },
  chart: { metadata: { name: 'web', version: '1.2.3', appVersion: '4' } },
  config: { replicas: 2 },
  manifest: 'kind: Pod\n',
}

test('ARC-16 the revisions of a Helm release are one entry, the newest first', () => {
  const secret = (name: string, version: string, status: string, namespace = 'a') => ({
    metadata: { name: `sh.helm.release.v1.${name}.v${version}`, namespace, labels: { name, version, status, owner: 'helm' } },
  })
  const found = releasesOf([
    secret('web', '2', 'superseded'),
    secret('web', '10', 'deployed'),
    secret('db', '1', 'failed'),
    { metadata: { name: 'no-labels' } },
  ])
  assert.deepEqual(
    found.map(({ namespace, name, revisions }) => [namespace, name, revisions.map(({ revision, status }) => `${revision} ${status}`)]),
    [
      ['a', 'db', ['1 failed']],
      ['a', 'web', ['10 deployed', '2 superseded']],
    ],
  )
})

test('ARC-16 the content of a Helm release is unpacked', async () => {
  const want = { chart: 'web-1.2.3', appVersion: '4', description: 'Upgrade complete', notes: 'Hello', manifest: 'kind: Pod\n', values: { replicas: 2 } }
  assert.deepEqual(await contentOf(twice(gzipSync(JSON.stringify(release)))), { ...want, deployed: '2026-01-01T00:00:00Z' })
  assert.equal((await contentOf(twice(Buffer.from(JSON.stringify(release))))).chart, 'web-1.2.3')
})

test('ARC-16 a Helm release that is damaged, or unpacks to more than 20 MiB, is refused', async () => {
  await assert.rejects(contentOf('%%%'))
  await assert.rejects(contentOf(twice(Buffer.from('text'))))
  await assert.rejects(contentOf(twice(gzipSync(Buffer.alloc(21 * 2 ** 20, 97)))), /larger than 20 MiB/)
})

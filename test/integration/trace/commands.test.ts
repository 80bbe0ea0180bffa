import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { ExplainedRequest } from '#api/debug/traces'
import { pods } from '#client/builtIn'
import { startCluster, type TestCluster } from '#testing/cluster'
import { runCommand } from '#testing/commandRun'
import { hopNames, type PodTrace } from '#trace/hops'

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: c, image: busybox}]}
`

/** What is not recorded, and what skiff explain says about it. */
const withoutRecords: readonly (readonly [words: readonly string[], expected: RegExp])[] = [
  [['explain', 'nothing-has-this-id'], /there is no record of a request nothing-has-this-id/],
  [['explain', 'cm/nothing'], /^CommandError: there is no ConfigMap default\/nothing, and nothing is recorded about one$/],
  [['explain', 'pod', 'nope'], /^CommandError: there is no Pod default\/nope, and nothing is recorded about one$/],
  [['explain', 'node/n1'], /^CommandError: nothing is recorded about Node n1$/],
]

const misused: readonly (readonly string[])[] = [
  ['trace', 'apply'],
  ['trace', 'web', '-f', 'bad.yaml'],
  ['trace', 'web', '-o', 'xml'],
  ['trace', 'web', '--timeout', '0'],
  ['explain', 'last', '-o', 'yaml'],
]

describe('the commands of the trace', () => {
  let cluster: TestCluster
  let dir: string
  let kubeconfig: string[]

  before(async () => {
    cluster = await startCluster({ clock: 'real' })
    dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-trace-'))
    await fs.writeFile(path.join(dir, 'kubeconfig'), await cluster.kubeconfig())
    await fs.writeFile(path.join(dir, 'web.yaml'), manifest)
    kubeconfig = ['--kubeconfig', path.join(dir, 'kubeconfig')]
    await cluster.client.transport.request({ method: 'POST', path: '/skiff/traces/rules', body: { object: 'pods/default/web' } })
    const body = { metadata: { name: 'web' }, spec: { containers: [{ name: 'c', image: 'busybox' }] } }
    await cluster.client.transport.request({ method: 'POST', path: '/api/v1/namespaces/default/pods', body })
    await cluster.until(async () => (await cluster.client.of(pods).get({ namespace: 'default', name: 'web' })).status?.phase === 'Running')
  })

  after(async () => {
    await cluster.close()
    await fs.rm(dir, { recursive: true })
  })

  const skiff = async (...words: string[]) => {
    const { error, stdout } = await runCommand([...words, ...kubeconfig])
    assert.equal(error, undefined)
    return stdout
  }

  test('LRN-01 skiff trace POD prints a waterfall, JSON, OpenTelemetry and one HTML file', async () => {
    const lines = (await skiff('trace', 'web')).split('\n')
    assert.match(lines[0] ?? '', /^Pod default\/web, node n1: [\d.]+ ms$/)
    assert.deepEqual(
      lines.slice(2, 14).map((line) => hopNames.find((name) => line.includes(` ${name} `))),
      hopNames,
    )
    const found = JSON.parse(await skiff('trace', 'pod/web', '-o', 'json')) as PodTrace
    assert.equal(found.hops.length, 12)
    assert.deepEqual(
      found.hops.slice(2, 8).map(({ source }) => source),
      Array.from({ length: 6 }, () => 'measured'),
    )
    const spans = JSON.parse(await skiff('trace', 'web', '-o', 'otlp')).resourceSpans[0].scopeSpans[0].spans
    assert.equal(spans.length, 13)
    const file = path.join(dir, 'web.html')
    assert.equal(await skiff('trace', 'web', '-o', 'html', '--to', file), `Wrote ${file}\n`)
    assert.match(await fs.readFile(file, 'utf8'), /<title>Pod default\/web/)
  })

  test('ARC-07 skiff trace apply sends the manifest and measures its own part, too', async () => {
    const found = JSON.parse(await skiff('trace', 'apply', '-f', path.join(dir, 'web.yaml'), '-o', 'json')) as PodTrace
    assert.match(found.hops[0]?.decision ?? '', /^Pod web is valid$/)
    assert.match(found.hops[1]?.decision ?? '', /^TLSv1/)
    assert.ok(found.hops.slice(0, 7).every(({ source }) => source === 'measured'))
  })

  test('ARC-07 skiff trace apply says that a manifest is unchanged, and that a kind makes no pod', async () => {
    const file = path.join(dir, 'web.yaml')
    const again = await runCommand(['trace', 'apply', '-f', file, ...kubeconfig])
    assert.match(String(again.error), /^CommandError: Pod web is unchanged: the apply changed nothing, so no pod comes of it$/)
    assert.equal((again.error as { hint?: string }).hint, 'for a pod that is there: skiff trace web -n default')
    await fs.writeFile(path.join(dir, 'cm.yaml'), 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\n')
    const { error } = await runCommand(['trace', 'apply', '-f', path.join(dir, 'cm.yaml'), ...kubeconfig])
    assert.match(String(error), /cm\.yaml: a ConfigMap makes no pod, so there is nothing to trace; nothing was applied$/)
    await assert.rejects(cluster.client.transport.request({ method: 'GET', path: '/api/v1/namespaces/default/configmaps/conf' }))
  })

  test('ARC-07 a manifest that is wrong is refused before a connection is made', async () => {
    const bad = path.join(dir, 'bad.yaml')
    const refused = async (text: string, expected: RegExp) => {
      await fs.writeFile(bad, text)
      const { error } = await runCommand(['trace', 'apply', '-f', bad, '--kubeconfig', path.join(dir, 'kubeconfig')])
      assert.match(String(error), expected)
    }
    await refused(manifest.replace('image:', 'imag:'), /unknown field "spec\.containers\[0\]\.imag"/)
    await refused(manifest.replace('busybox', '[1]'), /Pod in version "v1" cannot be handled as a Pod/)
    await refused('kind: Pod', /expected apiVersion and kind/)
    await refused(`${manifest}---\n${manifest}`, /expected one object, found 2/)
    await refused('a: [', /bad\.yaml: /)
    for (const words of misused) assert.equal(((await runCommand([...words])).error as { exit?: string }).exit, 'usage', words.join(' '))
  })

  test('X7 skiff explain shows the last request, one by its id, and what was done about an object', async () => {
    const refused = cluster.client.transport.request({ method: 'POST', path: '/api/v1/namespaces/gone/configmaps', body: { metadata: { name: 'x' } } })
    await assert.rejects(refused)
    const text = await skiff('explain', 'last')
    assert.match(text, /^asked: +create \/api\/v1\/namespaces\/gone\/configmaps$/m)
    assert.match(
      text,
      /^Refused by NamespaceLifecycle: namespaces "gone" not found\nWhat would allow it:\n {2}namespace gone does not exist\n {2}create it: kubectl create namespace gone$/m,
    )
    const last = JSON.parse(await skiff('explain', 'last', '-o', 'json')) as ExplainedRequest
    assert.equal((JSON.parse(await skiff('explain', last.id, '-o', 'json')) as ExplainedRequest).id, last.id)
    const about = await skiff('explain', 'po/web')
    assert.match(about, /^Earlier requests about it:$/m)
    assert.match(about, / create +binding +201 +system:kube-scheduler /)
    assert.doesNotMatch(about, / get +200 /)
    assert.match(about, /kube-scheduler +attempt/)
    assert.match(about, /runtime +StartContainer/)
    for (const [words, expected] of withoutRecords) {
      const { error } = await runCommand([...words, ...kubeconfig])
      assert.equal((error as { exit?: string }).exit, 'notFound', String(error))
      assert.match(String(error), expected)
    }
  })
})

/** A bundle of a cluster that is gone (X18): written, searched for secrets, opened in Chromium, read with kubectl, and forked. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { openBundle } from '#cli/bundle/bundleReader'
import { complaintsOf, launch, obstacleToPage, type ServedPage, servePage } from './support/browser.ts'
import { LocalCluster, skiffBin } from './support/localCluster.ts'

const skip = obstacleToPage()
const options = { skip }
const name = 'e2e-bundle'
const forkName = 'e2e-bundle-fork'
const code = 'open-sesame-4711'
const objects = `
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {code: ${code}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data: {tea: "3", url: "http://x/?code=${code}"}
---
apiVersion: v1
kind: Pod
metadata:
  name: chatty
  annotations: {skiff.dev/simulated-logs: "first line\\n<script>alert(1)</script>\\nthe code is ${code}"}
spec: {containers: [{name: main, image: example.com/chatty:1}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gone}
`
let cluster: LocalCluster
let file: string
/** The state with configmap gone. */
let then: string
let served: ServedPage | undefined
let browser: Browser | undefined
let context: BrowserContext
let page: Page
let complaints: string[] = []

async function skiff(...args: string[]): Promise<string> {
  const { code: exit, stdout, stderr } = await cluster.skiff(args)
  assert.equal(exit, 0, stderr)
  return stdout
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--history', '1h'])
  file = path.join(cluster.dir, 'lab.skiff')
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/chatty', '--timeout=60s'])
  then = await cluster.must(['get', 'configmap', 'gone', '-o', 'jsonpath={.metadata.resourceVersion}'])
  await cluster.must(['delete', 'configmap', 'gone'])
  await cluster.must(['patch', 'configmap', 'prices', '-p', '{"data":{"tea":"4"}}'])
  await skiff('bundle', '--name', name, '--to', file)
  await skiff('stop', name)
  served = await servePage(cluster, [file])
  browser = await launch()
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  context.setDefaultTimeout(20_000)
  complaints = complaintsOf(context)
  page = await context.newPage()
  await page.goto(served.url)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})

after(async () => {
  if (skip) return
  await browser?.close()
  await served?.end()
  await cluster?.skiff(['delete', forkName])
  await cluster?.delete()
})

const open = (address: string) => page.goto(`${served?.origin}/${address}`)

async function partsWith(text: string, bundle: string): Promise<readonly string[]> {
  const opened = await openBundle(bundle)
  const found: string[] = []
  for (const { name: part } of opened.index.parts) if ((await opened.read(part)).includes(text)) found.push(part)
  await opened.close()
  return found
}

test('X18 skiff bundle writes a file with objects, logs and facts, and without secrets', options, async () => {
  const shown = await skiff('bundle', 'show', file)
  for (const part of ['store.db', 'logs/pods/default/chatty/main.log', 'logs/skiff/server.log', 'metrics/apiserver.txt', 'traces.json', 'facts/doctor.json'])
    assert.match(shown, new RegExp(`^${part} `, 'm'))
  for (const form of [code, Buffer.from(code).toString('base64'), 'PRIVATE KEY']) assert.deepEqual(await partsWith(form, file), [])
  assert.match(await skiff('bundle', 'show', file, 'logs/pods/default/chatty/main.log'), /the code is \*\*\*/)
})

test('X18 the page of a bundle shows lists, an object, its log and its history, as text', options, async () => {
  await open('#/list/pods?ns=default')
  await page.getByRole('row').getByRole('link', { name: 'chatty', exact: true }).waitFor()
  await page.getByText(`${name} of 20`).first().waitFor()
  await open('#/object/pods/default/chatty/logs')
  await page.getByRole('log').getByText('<script>alert(1)</script>').waitFor()
  await page.getByRole('log').getByText('the code is ***').waitFor()
  await open('#/object/pods/default/chatty/shell')
  await page.getByText('A shell needs the running cluster: this is a bundle').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0)
  await open('#/object/configmaps/default/prices/history')
  await page
    .getByRole('list', { name: 'Versions' })
    .getByText(/kubectl-patch/)
    .first()
    .waitFor()
  assert.deepEqual(complaints, [])
})

test('X18 the slider of a bundle shows a deleted object at the revision when it was there', options, async () => {
  await open(`#/past?ns=default&kind=configmaps&revision=${then}`)
  await page.getByRole('row').getByRole('link', { name: 'gone' }).waitFor()
  await page.getByRole('button', { name: 'now' }).click()
  await page.getByRole('row').getByRole('link', { name: 'gone' }).waitFor({ state: 'detached' })
  assert.deepEqual(complaints, [])
})

test('X18 kubectl reads a bundle that is served, and changes nothing', options, async () => {
  const child = spawn(process.execPath, [skiffBin, 'bundle', 'serve', file], { env: cluster.env, stdio: ['ignore', 'pipe', 'pipe'] })
  const kubeconfig = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text).trim()))
    child.once('exit', (exit) => reject(new Error(`ended with ${exit}`)))
  })
  assert.match(await cluster.must(['--kubeconfig', kubeconfig, 'get', 'pods', '--no-headers']), /^chatty +1\/1 +Running/)
  assert.match(await cluster.must(['--kubeconfig', kubeconfig, 'logs', 'chatty']), /^first line\n/)
  const refused = await cluster.kubectl(['--kubeconfig', kubeconfig, 'delete', 'pod', 'chatty'])
  assert.match(refused.stderr, /a bundle is read-only/)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGINT')
  await ended
})

test('X18 a stopped cluster is bundled without its server', options, async () => {
  const offline = path.join(cluster.dir, 'offline.skiff')
  await skiff('bundle', '--name', name, '--offline', '--to', offline, '-q')
  const [one, other] = await Promise.all([openBundle(file), openBundle(offline)])
  await Promise.all([one.close(), other.close()])
  assert.ok(other.index.revision >= one.index.revision)
  assert.ok(other.index.changes > 0)
  assert.deepEqual(await partsWith(code, offline), [])
})

test('X18 skiff bundle fork makes a simulated cluster of a bundle', options, async () => {
  const stdout = await skiff('bundle', 'fork', file, forkName, then, '-q')
  assert.match(stdout, new RegExp(`^Cluster "${forkName}" has \\d+ objects of revision ${then};`))
  const must = (...args: string[]) => cluster.must(['--context', `skiff-${forkName}`, ...args])
  assert.equal(await must('get', 'configmap', 'prices', '-o', 'jsonpath={.data.tea}'), '3')
  assert.equal(await must('get', 'configmap', 'gone', '-o', 'name'), 'configmap/gone')
  await must('wait', '--for=condition=Ready', 'pod/chatty', '--timeout=60s')
})

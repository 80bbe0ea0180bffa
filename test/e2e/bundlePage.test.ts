/** The views of the page over a bundle (X18), in Chromium: those whose data the file has work, and the others say why they do not. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { complaintsOf, launch, obstacleToPage, type ServedPage, servePage } from './support/browser.ts'
import { LocalCluster } from './support/localCluster.ts'
import type { Visit } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'

const skip = obstacleToPage()
const options = { skip }
const name = 'e2e-bundle-page'
const object = (metadata: object, more: object) => JSON.stringify({ apiVersion: 'v1', metadata, ...more })
const containers = [{ name: 'main', image: 'example.com/a:1', resources: { requests: { cpu: '250m' } }, ports: [{ containerPort: 80 }] }]
/** As Helm writes it: base64 around gzip, and base64 of the API around that. */
const release = gzipSync(JSON.stringify({ info: {}, chart: { metadata: { name: 'shop', version: '1.2.3' } }, config: {}, manifest: '' })).toString('base64')
let cluster: LocalCluster | undefined
let served: ServedPage | undefined
let browser: Browser | undefined
let context: BrowserContext
let page: Page
let node: string
let complaints: string[] = []

async function makeBundle(made: LocalCluster): Promise<string> {
  const file = path.join(made.dir, 'lab.skiff')
  for (const rule of [{ perSecond: 50 }, { object: 'pods/default/traced' }])
    await made.mustWith(JSON.stringify({ ...rule, seconds: 120 }), ['create', '--raw', '/skiff/traces/rules', '-f', '-'])
  await made.mustWith(object({ name: 'traced' }, { kind: 'Pod', spec: { containers } }), ['create', '-f', '-'])
  await made.must(['create', 'deployment', 'web', '--image=example.com/web:1'])
  await made.must(['create', 'service', 'clusterip', 'web', '--tcp=80'])
  const labels = { owner: 'helm', name: 'shop', status: 'deployed', version: '1' }
  const data = { release: Buffer.from(release).toString('base64') }
  await made.mustWith(object({ name: 'sh.helm.release.v1.shop.v1', labels }, { kind: 'Secret', type: 'helm.sh/release.v1', data }), ['create', '-f', '-'])
  await made.must(['wait', '--for=condition=Ready', 'pod/traced', '--timeout=60s'])
  node = await made.must(['get', 'pod', 'traced', '-o', 'jsonpath={.spec.nodeName}'])
  const { code, stderr } = await made.skiff(['bundle', '--name', name, '--to', file])
  assert.equal(code, 0, stderr)
  await made.skiff(['stop', name])
  return file
}

before(async () => {
  if (skip) return
  cluster = await LocalCluster.start(name, ['--runtime', 'simulated', '--history', '1h'])
  served = await servePage(cluster, [await makeBundle(cluster)])
  browser = await launch()
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  context.setDefaultTimeout(20_000)
  complaints = complaintsOf(context)
  page = await context.newPage()
  await page.goto(served.url)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})

after(async () => {
  await browser?.close()
  await served?.end()
  await cluster?.delete()
})

async function open(address: string): Promise<void> {
  await page.goto(`${served?.origin}/${address}`)
}

/** Opens the view, looks, and finds no error of a script. */
function view(title: string, address: string, look: () => Promise<unknown>): void {
  test(title, options, async () => {
    complaints.length = 0
    await open(address)
    await look()
    assert.deepEqual(complaints, [])
  })
}

view('X18 the trace of a pod in a bundle has its hops and what the kubelet did, and offers no recording', '#/object/pods/default/traced/trace', async () => {
  const hops = page.getByRole('list', { name: 'Hops of the pod' }).getByRole('listitem')
  await hops.filter({ hasText: '12 runtime' }).getByText('StartContainer').waitFor()
  assert.equal(await hops.count(), 12)
  await page.getByText('The bundle has what was recorded before.').waitFor()
  assert.equal(await page.getByRole('button', { name: /^Record/ }).count(), 0)
})

view('X18 the live map of a bundle has counts, and plays a request that was recorded', '#/live', async () => {
  await page
    .getByRole('article', { name: 'Clients' })
    .getByText(/^\d+ requests$/)
    .waitFor()
  await page
    .getByRole('article', { name: 'Kubelets' })
    .getByText(/of \d+ ready/)
    .waitFor()
  await page.getByText('recorded before the bundle was taken').waitFor()
  await page.getByRole('article', { name: 'Recorded requests' }).getByRole('button', { name: 'create pods' }).first().click()
  await page.getByRole('region', { name: 'A request on its way' }).getByRole('list', { name: 'Stages' }).getByText('authorization').first().waitFor()
})

view('X18 the controllers of a bundle have the counts of their queues, and reconciles that were recorded', '#/controllers', async () => {
  await page.getByRole('table', { name: 'Queues' }).getByRole('rowheader', { name: 'deployment', exact: true }).waitFor()
  await page.getByText('counts and averages since the server started').waitFor()
  await page.getByRole('region', { name: 'Reconciles' }).getByRole('listitem').first().waitFor()
})

view('X18 the store of a bundle is walked by folders', '#/store?prefix=/registry/pods/default/&key=/registry/pods/default/traced', async () => {
  await page.getByRole('region', { name: 'Versions of the key' }).getByRole('row').nth(1).waitFor()
})

view('X18 the capacity of the nodes of a bundle is shown with its pods', '#/capacity', async () => {
  await page
    .getByRole('article', { name: node })
    .getByRole('img', { name: /^CPU: 0\.\d+ cores of / })
    .waitFor()
})

view('X18 who may do something is listed of a bundle', '#/access?ns=default', async () => {
  await page.getByRole('region', { name: 'Subjects with a right' }).getByRole('button', { name: 'List' }).click()
  await page.getByRole('table', { name: 'Subjects' }).getByRole('row').filter({ hasText: 'cluster-admin' }).first().waitFor()
})

view('X18 why a pod of a bundle is as it is, is answered from its objects', '#/object/pods/default/traced/why', async () => {
  await page.getByRole('region', { name: 'Explanation' }).waitFor()
})

view('X18 the Helm releases of a bundle are listed, and their content is said to be missing', '#/helm?ns=default', async () => {
  await page.getByRole('link', { name: /shop/ }).click()
  await page.getByText('The bundle was taken without the values of Secrets').waitFor()
})

for (const [address, why] of [
  ['object/pods/default/traced/calls', 'The agents of the nodes keep calls in memory: a bundle has none'],
  ['object/services/default/web/rules', 'Rules are read from the kernels of the nodes: a bundle has none'],
  ['object/pods/default/traced/files', 'Files need the running cluster: this is a bundle'],
  ['usage', 'A bundle has no usage: metrics.k8s.io keeps no past'],
  ['scheduling?pod=default/traced', 'The scheduler of a running cluster explains it: this is a bundle, whose pods have events'],
  ['chaos', 'Faults need a running cluster: this is a bundle, which nothing changes'],
] as const)
  view(`X18 ${address} of a bundle says why it has nothing`, `#/${address}`, () => page.getByText(why).waitFor())

view('X18 a bundle offers no faults, and no command that would forward a port', '#/object/pods/default/traced', async () => {
  await page.getByRole('region', { name: 'Ports' }).getByText('80/TCP').waitFor()
  assert.equal(await page.getByText('kubectl port-forward').count(), 0)
  assert.equal(await page.getByRole('link', { name: 'Chaos', exact: true }).count(), 0)
})

test('X18 ages in a bundle count until it was taken', options, async () => {
  const tab = await context.newPage()
  await tab.clock.install()
  await tab.goto(`${served?.origin}/#/list/pods?ns=default`)
  const age = () => tab.getByRole('row').filter({ hasText: 'traced' }).locator('time').first().textContent()
  const first = await age()
  await tab.clock.fastForward('10:00')
  assert.equal(await age(), first)
  await tab.close()
})

for (const address of ['live', 'controllers']) {
  const { name: title, run } = viewFlow(address)
  test(`${title}, of a bundle`, options, () => run({ page, open } as Visit))
}

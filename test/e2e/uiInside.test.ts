/**
 * What the page of `skiff ui` shows of the cluster's inside, in Chromium: the live map (X9), traces (LRN-01), reconciles (LRN-05), the store's keys (LRN-02),
 * rules of Services (LRN-06) and calls of the runtime (LRN-07).
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import type { LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example.com/web:1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data: {tea: "3"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: viewer}
---
apiVersion: v1
kind: Pod
metadata:
  name: files
  annotations:
    skiff.dev/simulated-exec: '{"cat /etc/motd": {"stdout": "hello"}, "cat /missing": {"stderr": "no such file", "exitCode": 1}, "sh -c cat > \\"$0\\" /tmp/new.txt": {}}'
spec: {containers: [{name: main, image: example.com/a:1, resources: {requests: {cpu: 250m, memory: 64Mi}}}]}
`

/** As Helm writes it: base64 around gzip, and base64 of the API around that. */
function helmSecret(revision: number, status: string): string {
  const chart = { metadata: { name: 'shop', version: '1.2.3', appVersion: '4' } }
  const release = { info: { description: 'Install complete', notes: '<b>Hello</b>' }, chart, config: { replicas: revision }, manifest: 'kind: Service\n' }
  const packed = Buffer.from(gzipSync(JSON.stringify(release)).toString('base64'))
  const labels = { owner: 'helm', name: 'shop', status, version: String(revision) }
  const metadata = { name: `sh.helm.release.v1.shop.v${revision}`, labels }
  return JSON.stringify({ apiVersion: 'v1', kind: 'Secret', type: 'helm.sh/release.v1', metadata, data: { release: packed.toString('base64') } })
}

const pod = (name: string) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [{ name: 'main', image: 'example.com/a:1' }] } })

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
}

const revisionOf = async (cluster: LocalCluster, name: string) => Number(await cluster.must(['get', 'cm', name, '-o', 'jsonpath={.metadata.resourceVersion}']))

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true })

/** Compressed bytes of the scripts and styles that the page has loaded. */
const loadedBytes = (page: Page) =>
  page.evaluate<number>(
    "performance.getEntriesByType('resource').filter(({ name }) => /\\.(js|css)$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)",
  )

const flows: Flow[] = [
  {
    name: 'ARC-16 the first load takes at most 150 KB, and a view with charts loads its own code',
    run: async ({ page, open }) => {
      await open('#/overview')
      const first = await loadedBytes(page)
      assert.ok(first > 20_000 && first <= 150_000, `${first} bytes`)
      await open('#/usage')
      assert.ok((await loadedBytes(page)) > first + 10_000)
    },
  },
  {
    name: 'X9 the map shows the components with numbers of their own, and a request on its way with the times of its stages',
    run: async ({ page, open, cluster }) => {
      await open('#/live')
      await page.getByRole('article', { name: 'API server' }).getByText('ms each').waitFor()
      await page.getByRole('article', { name: 'Kubelets' }).getByText('2 of 2 ready').waitFor()
      await page
        .getByRole('article', { name: 'Recorded requests' })
        .getByText(/requests of the last seconds are recorded/)
        .waitFor()
      await cluster.mustWith(pod('lit'), ['create', '-f', '-'])
      await page.getByRole('button', { name: 'create pods default/lit' }).first().click()
      const lens = page.getByRole('region', { name: 'A request on its way' })
      for (const stage of ['authorization', 'validation', 'storage', 'watchFanOut', 'kube-scheduler attempt', 'kubelet sync'])
        await lens.getByRole('list', { name: 'Stages' }).getByText(stage).first().waitFor()
      await page.locator('[data-component=store] .glow').first().waitFor({ state: 'attached' })
      await lens.getByRole('button', { name: 'Show the next ones' }).click()
      assert.ok((await page.locator('.map svg .line').count()) >= 7, 'lines between the components')
    },
  },
  {
    name: 'X9 a user without rights for the metrics gets the server’s refusal in the live view',
    run: async ({ browser, cluster, served }) => {
      const token = await cluster.must(['create', 'token', 'viewer'])
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(served.origin)
      await page.getByLabel('Address or token').fill(token)
      await page.getByRole('button', { name: 'Log in' }).click()
      await page.getByText('system:serviceaccount:default:viewer').waitFor()
      await page.goto(`${served.origin}/#/live`)
      await page.getByText('forbidden: User "system:serviceaccount:default:viewer" cannot get path "/metrics"').waitFor()
      await page.goto(`${served.origin}/#/store`)
      await page.getByText('cannot get path "/skiff/revisions"').waitFor()
      await context.close()
    },
  },
  {
    name: 'LRN-05 the trace of an object is empty until it is recorded, and that of a Deployment shows requests and reconciles with their times',
    run: async ({ page, open, cluster }) => {
      // Created before a view asked for a sample.
      await open('#/object/configmaps/default/prices/trace')
      await heading(page, 'Nothing is recorded about it').waitFor()
      await cluster.must(['create', 'deployment', 'traced', '--image=example.com/web:1'])
      await open('#/object/deployments.apps/default/traced/trace')
      await page.getByRole('button', { name: 'Record for 10 minutes' }).click()
      await page.getByText('What happens to traced is recorded').waitFor()
      await cluster.must(['scale', 'deployment/traced', '--replicas=2'])
      const rows = page.getByRole('list', { name: 'Requests and what components did' }).getByRole('listitem')
      await rows.filter({ hasText: 'deployment-controller' }).filter({ hasText: 'reconcile' }).first().waitFor()
      await rows.filter({ hasText: 'patch deployments/scale' }).first().getByRole('button').click()
      await page
        .getByRole('list', { name: /^Stages of patch deployments\/scale/ })
        .getByText('storage')
        .waitFor()
    },
  },
  {
    name: 'LRN-08 a refused request about an object is shown with what would allow it',
    run: async ({ page, open, cluster }) => {
      await cluster.kubectl(['delete', 'deployment', 'web', '--as', 'bob', '--as-group', 'system:authenticated'])
      await open('#/object/deployments.apps/default/web/trace')
      const row = page.getByRole('listitem').filter({ hasText: 'delete deployments' }).filter({ hasText: 'bob' }).first()
      await row.getByText(/403 deployments.apps "web" is forbidden/).waitFor()
      await row.getByRole('button').first().click()
      await row.getByText(/needs verb delete on deployments.apps in namespace default/).waitFor()
    },
  },
  {
    name: 'LRN-01 the trace of a pod shows its hops with measured times, and what the kubelet and its runtime did',
    run: async ({ page, open, cluster }) => {
      await cluster.mustWith(JSON.stringify({ object: 'pods/default/hops', seconds: 60 }), ['create', '--raw', '/skiff/traces/rules', '-f', '-'])
      await cluster.mustWith(pod('hops'), ['create', '-f', '-'])
      await cluster.must(['wait', '--for=condition=Ready', 'pod/hops', '--timeout=60s'])
      await open('#/object/pods/default/hops/trace')
      const hops = page.getByRole('list', { name: 'Hops of the pod' }).getByRole('listitem')
      await hops
        .filter({ hasText: '10 scheduler' })
        .getByText(/chose \S+: \d of 2 nodes fit/)
        .waitFor()
      await hops.filter({ hasText: '12 runtime' }).getByText('StartContainer').waitFor()
      assert.equal(await hops.count(), 12)
      await page.getByRole('list', { name: 'Requests and what components did' }).getByText('RunPodSandbox').first().waitFor()
    },
  },
  {
    name: 'LRN-05 the controllers’ queues count, and a reconcile leads to the object that it was about',
    run: async ({ page, open, cluster }) => {
      await open('#/controllers')
      await page.getByRole('table', { name: 'Queues' }).getByRole('rowheader', { name: 'deployment', exact: true }).waitFor()
      await page.getByText(/requests of the last seconds are recorded/).waitFor()
      await cluster.must(['annotate', 'deployment/web', 'touched=yes'])
      await page.getByLabel('Controller or object').fill('deployments/default/web')
      await page.getByRole('link', { name: 'deployments/default/web' }).first().click()
      await page.getByRole('heading', { name: 'Deployment web' }).waitFor()
    },
  },
  {
    name: 'LRN-02 the store is walked by folders, and a key shows its versions and what changed between any two',
    run: async ({ page, open, cluster }) => {
      for (const price of ['4', '5']) await cluster.must(['patch', 'cm', 'prices', '-p', `{"data":{"tea":"${price}"}}`])
      await open('#/store')
      await page.getByRole('link', { name: 'configmaps/' }).click()
      await page.getByRole('link', { name: 'default/', exact: true }).click()
      await page.getByRole('link', { name: 'prices', exact: true }).click()
      const difference = page.getByRole('status', { name: 'Difference' })
      await difference.locator('del').getByText('4').waitFor()
      await difference.locator('ins').getByText('5').waitFor()
      const versions = page.getByRole('region', { name: 'Versions of the key' })
      await versions.getByRole('radio', { name: /^From/ }).last().check()
      await difference.locator('del').getByText('3').waitFor()
      assert.equal(await versions.getByRole('row').count(), 4, 'a header and three versions')
    },
  },
  {
    name: 'LRN-02 the slider moves the store to a revision at which the key was an earlier one',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'configmap', 'moving', '--from-literal=a=1'])
      const first = await revisionOf(cluster, 'moving')
      await cluster.must(['patch', 'cm', 'moving', '-p', '{"data":{"a":"2"}}'])
      const key = '/registry/configmaps/default/moving'
      await open(`#/store?prefix=/registry/configmaps/default/&key=${key}&revision=${first + 1}`)
      await page.getByRole('button', { name: 'One revision back' }).click()
      await page.getByRole('listitem').filter({ hasText: 'moving' }).getByText(`revision ${first}, version 1`).waitFor()
      await page.getByRole('button', { name: 'One revision back' }).click()
      await heading(page, 'The key did not exist at this revision').waitFor()
    },
  },
  {
    name: 'LRN-02 the values of a Secret are masked in the store’s view',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'secret', 'generic', 'hidden', '--from-literal=p=first'])
      await cluster.must(['patch', 'secret', 'hidden', '-p', '{"stringData":{"p":"second"}}'])
      await open('#/store?prefix=/registry/secrets/default/&key=/registry/secrets/default/hidden')
      await page.getByText('*** (after)').waitFor()
      await page.getByText(/^The value at revision/).click()
      await page.locator('.versions pre').getByText('***').waitFor()
      assert.doesNotMatch((await page.locator('main').textContent()) ?? '', /Zmlyc3Q|c2Vjb25k/)
    },
  },
  {
    name: 'LRN-06 the rules of a Service are shown for each node, with those that the kernel does not have',
    run: async ({ page, open }) => {
      await open('#/object/services/default/web/rules')
      await page.getByText('a simulated node has no network').first().waitFor()
      const rules = [{ place: 'chain services', lines: ['<b>ip daddr 10.0.0.1</b> jump x'], connections: 7 }, { place: 'chain x' }]
      await page.route('**/servicerules/**', (route) => route.fulfill({ json: { mode: 'nftables', rules } }))
      await page.getByRole('button', { name: 'Ask again' }).click()
      await page.getByText('<b>ip daddr 10.0.0.1</b> jump x').first().waitFor()
      await page.getByText('1 are not in the kernel').first().waitFor()
      assert.equal(await page.getByText('7 connections').count(), 2, 'one for each node')
    },
  },
  {
    name: 'LRN-07 the calls for a pod are shown with their arguments and answers, which are text',
    run: async ({ page, open, cluster }) => {
      const name = await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[0].metadata.name}'])
      await open(`#/object/pods/default/${name}/calls`)
      await page.getByText('a simulated node calls no container runtime, CSI driver or CNI plugin').waitFor()
      const call = {
        api: 'CRI',
        method: 'RunPodSandbox',
        time: '2026-01-01T00:00:00.123Z',
        milliseconds: 12,
        code: 'OK',
        request: '{"a":"<img src=x>"}',
        answer: 'cut {',
      }
      await page.route('**/nodecalls/**', (route) => route.fulfill({ json: { calls: [call] } }))
      await page.getByRole('button', { name: 'Ask again' }).click()
      await page.getByText('RunPodSandbox').click()
      await page.getByText('"a": "<img src=x>"').waitFor()
      await page.getByText('cut {').waitFor()
      assert.equal(await page.locator('img').count(), 0)
    },
  },
  {
    name: 'ARC-16 each node is a picture of the pods that ask for its capacity',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['wait', '--for=condition=Ready', 'pod/files', '--timeout=60s'])
      const node = await cluster.must(['get', 'pod', 'files', '-o', 'jsonpath={.spec.nodeName}'])
      await open('#/capacity')
      const card = page.getByRole('article', { name: node })
      await card.getByRole('img', { name: /^CPU: 0.25 cores of / }).waitFor()
      await card.locator('[title="default/files: 0.06 GiB"]').waitFor()
    },
  },
  {
    name: 'ARC-16 what nodes and pods use is drawn, in a range that is chosen',
    run: async ({ page, open }) => {
      await open('#/usage')
      const pods = page.getByRole('article', { name: 'Pods, memory' })
      await pods.getByRole('link', { name: 'default/files' }).waitFor()
      await page.getByRole('article', { name: 'Nodes, CPU, cores' }).locator('canvas').waitFor()
      await page.getByLabel('Range').selectOption({ label: 'all' })
      await pods.locator('canvas').waitFor()
    },
  },
  {
    name: 'ARC-16 a Helm release shows its revisions, and what each was made of, as text',
    run: async ({ page, open, cluster }) => {
      for (const [revision, status] of [
        [1, 'superseded'],
        [2, 'deployed'],
      ] as const)
        await cluster.mustWith(helmSecret(revision, status), ['create', '-f', '-'])
      await open('#/helm?ns=default')
      await page.getByRole('link', { name: /shop/ }).click()
      await page.getByText('shop-1.2.3').waitFor()
      await page.getByText('<b>Hello</b>').waitFor()
      await page.getByText('"replicas": 2').waitFor()
      await page.getByRole('link', { name: 'revision 1' }).click()
      await page.getByText('"replicas": 1').waitFor()
    },
  },
  {
    name: 'ARC-16 who may do something is listed with the binding that allows it',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'role', 'pod-cleaner', '--verb=delete', '--resource=pods'])
      await cluster.must(['create', 'rolebinding', 'cleaners', '--role=pod-cleaner', '--serviceaccount=default:viewer'])
      await open('#/access?ns=default')
      await page.getByRole('region', { name: 'Subjects with a right' }).getByRole('button', { name: 'List' }).click()
      const row = page.getByRole('table', { name: 'Subjects' }).getByRole('row').filter({ hasText: 'ServiceAccount default/viewer' })
      await row.getByText('RoleBinding default/cleaners').waitFor()
    },
  },
  {
    name: 'ARC-16 a file is fetched from a container and put there, and the command’s failure is shown',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/files/files')
      const path = page.getByLabel('Path in the container')
      await path.fill('/etc/motd')
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])
      assert.deepEqual([download.suggestedFilename(), fs.readFileSync(await download.path(), 'utf8')], ['motd', 'hello'])
      await path.fill('/missing')
      await page.getByRole('button', { name: 'Download' }).click()
      await page.getByText('Download: no such file').waitFor()
      await path.fill('/tmp/')
      await page.getByLabel('File to upload').setInputFiles({ name: 'new.txt', mimeType: 'text/plain', buffer: Buffer.from('content') })
      await page.getByText('/tmp/new.txt: 7 bytes are written').waitFor()
    },
  },
  {
    name: 'ARC-16 a debug container is added to a pod, and can be chosen for a shell when it runs',
    run: async ({ page, open, cluster }) => {
      await open('#/object/pods/default/files/shell')
      await page.getByRole('button', { name: 'Debug container…' }).click()
      await page.getByLabel('Image').fill('example.com/debug:1')
      await page.getByRole('button', { name: 'Start' }).click()
      await page.getByText('debugger-1 starts').waitFor()
      await page.getByLabel('Container').locator('option', { hasText: 'debugger-1' }).waitFor({ state: 'attached' })
      const added = await cluster.must(['get', 'pod', 'files', '-o', 'jsonpath={.spec.ephemeralContainers[0].targetContainerName}'])
      assert.equal(added, 'main')
    },
  },
  ...[
    'capacity',
    'usage',
    'helm?release=default/shop',
    'live',
    'controllers',
    'store?prefix=/registry/configmaps/default/&key=/registry/configmaps/default/prices',
    'object/pods/default/hops/trace',
  ].map(viewFlow),
]

runFlows('e2e-ui-inside', ['--simulated-nodes', '2', '--history', '1h'], setUp, flows)

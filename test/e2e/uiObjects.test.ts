/** Objects in the page of `skiff ui` (ARC-16, LRN-02): changing them, asking why, logs, a shell, the past and the scheduler, in Chromium. */
import assert from 'node:assert/strict'
import type { Locator, Page } from 'playwright-core'
import { eventually, type LocalCluster } from './support/localCluster.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'

const template = (text: string) => `
    metadata:
      labels: {app: web}
      annotations: {skiff.dev/simulated-logs: "${text}"}
    spec: {containers: [{name: main, image: example.com/web:1}]}`

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:${template('hello from web')}
---
apiVersion: v1
kind: Pod
metadata:
  name: chatty
  annotations:
    skiff.dev/simulated-logs: "plain line\\n<script>alert(1)</script>\\n\\u001b[31mred line\\u001b[0m\\nneedle in the log"
    skiff.dev/simulated-exec: '{"sh": {"stdout": "you are in a shell\\n"}}'
spec: {containers: [{name: main, image: example.com/chatty:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: example.com/huge:1, resources: {requests: {cpu: "100"}}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices}
data: {tea: "3"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gone}
data: {a: b}
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
  await cluster.must(['wait', '--for=condition=Ready', 'pod/chatty', '--timeout=60s'])
}

/** The editor's text. */
const editor = (page: Page): Locator => page.locator('.cm-content')

/** Replaces a text in the editor as a user does. */
async function replaceInEditor(page: Page, from: string, to: string): Promise<void> {
  const line = page.locator('.cm-line').filter({ hasText: from }).first()
  await line.click()
  const text = (await line.textContent()) ?? ''
  await page.keyboard.press('Home')
  await page.keyboard.press('Shift+End')
  await page.keyboard.insertText(text.replace(from, to))
}

const fieldOf = (cluster: LocalCluster, what: readonly string[], jsonpath: string) => cluster.must(['get', ...what, '-o', `jsonpath=${jsonpath}`])

const flows: Flow[] = [
  {
    name: 'ARC-16 a change is checked by the server, shown as a difference, and then written',
    run: async ({ page, open, cluster }) => {
      await open('#/object/configmaps/default/prices/yaml')
      await editor(page).getByText('tea', { exact: true }).waitFor()
      assert.doesNotMatch((await editor(page).textContent()) ?? '', /managedFields/)
      await replaceInEditor(page, '"3"', '"4"')
      await page.getByRole('button', { name: 'Check' }).click()
      await page.getByText('The server accepts it. Nothing is written yet.').waitFor()
      await page.locator('.cm-deletedChunk').getByText('"3"').waitFor()
      assert.equal(await fieldOf(cluster, ['cm', 'prices'], '{.data.tea}'), '3')
      await replaceInEditor(page, '"4"', '"5"')
      await page.getByText('The server accepts it.').waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('prices is changed').waitFor()
      assert.equal(await fieldOf(cluster, ['cm', 'prices'], '{.data.tea}'), '5')
    },
  },
  {
    name: 'ARC-16 a change of another writer meanwhile is shown, and is overwritten only when the user says so',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'configmap', 'shared', '--from-literal=a=one'])
      await open('#/object/configmaps/default/shared/yaml')
      await editor(page).getByText('one').waitFor()
      await replaceInEditor(page, 'one', 'mine')
      await cluster.must(['patch', 'cm', 'shared', '-p', '{"data":{"a":"theirs"}}'])
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('The object changed while you edited it.').waitFor()
      await page.locator('.cm-deletedChunk').getByText('theirs').waitFor()
      assert.equal(await fieldOf(cluster, ['cm', 'shared'], '{.data.a}'), 'theirs')
      await page.getByRole('button', { name: 'Keep my changes' }).click()
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('shared is changed').waitFor()
      assert.equal(await fieldOf(cluster, ['cm', 'shared'], '{.data.a}'), 'mine')
    },
  },
  {
    name: 'ARC-16 a text that the server refuses stays, with the server’s words',
    run: async ({ page, open, cluster }) => {
      await open('#/object/configmaps/default/prices/yaml')
      await editor(page).getByText('tea', { exact: true }).waitFor()
      await replaceInEditor(page, 'tea', 'coffee and tea')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText(/ConfigMap "prices" is invalid/).waitFor()
      await editor(page).getByText('coffee and tea').waitFor()
      assert.match(await fieldOf(cluster, ['cm', 'prices'], '{.data}'), /"tea"/)
    },
  },
  {
    name: 'ARC-16 keys open other parts while YAML is shown, e puts the cursor into it, and Escape takes it out',
    run: async ({ page, open }) => {
      await open('#/object/configmaps/default/prices/summary')
      await page.keyboard.press('2')
      await editor(page).getByText('tea', { exact: true }).waitFor()
      await page.keyboard.press('1')
      await page.getByRole('link', { name: 'Summary', exact: true }).and(page.locator('[aria-current]')).waitFor()
      await page.keyboard.press('e')
      await page.locator('.cm-editor.cm-focused').waitFor()
      await page.keyboard.type('#')
      await page.getByRole('button', { name: 'Save' }).and(page.locator(':enabled')).waitFor()
      await page.keyboard.press('Escape')
      await page.keyboard.press('1')
      await page.getByRole('link', { name: 'Summary', exact: true }).and(page.locator('[aria-current]')).waitFor()
    },
  },
  {
    name: 'ARC-16 a Deployment is scaled',
    run: async ({ page, open, cluster }) => {
      await open('#/object/deployments.apps/default/web/summary')
      await page.getByRole('button', { name: 'Scale' }).click()
      await page.getByLabel('Replicas').fill('3')
      await page.getByRole('dialog').getByRole('button', { name: 'Scale' }).click()
      await page.getByText('web is scaled to 3').waitFor()
      assert.equal(await fieldOf(cluster, ['deployment', 'web'], '{.spec.replicas}'), '3')
      await page.getByText('3 of 3 ready').waitFor()
    },
  },
  {
    name: 'ARC-16 a Deployment is restarted',
    run: async ({ page, open, cluster }) => {
      await open('#/object/deployments.apps/default/web/summary')
      await page.getByRole('button', { name: 'Restart' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click()
      await page.getByText('web restarts').waitFor()
      assert.match(await fieldOf(cluster, ['deployment', 'web'], '{.spec.template.metadata.annotations}'), /restartedAt/)
    },
  },
  {
    name: 'ARC-16 a Deployment goes back to an earlier revision',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['set', 'image', 'deployment/web', 'main=example.com/web:2'])
      await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
      await open('#/object/deployments.apps/default/web/summary')
      await page
        .getByText('example.com/web:2')
        .first()
        .waitFor()
        .catch(() => undefined)
      await page.getByRole('button', { name: 'Roll back' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
      await page.getByText(/web goes back to revision/).waitFor()
      assert.equal(await fieldOf(cluster, ['deployment', 'web'], '{.spec.template.spec.containers[0].image}'), 'example.com/web:1')
    },
  },
  {
    name: 'ARC-16 an object is deleted after a question, and stays when the user decides against it',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['create', 'configmap', 'short'])
      await open('#/object/configmaps/default/short/summary')
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('dialog', { name: 'Delete ConfigMap short' }).getByRole('button', { name: 'Cancel' }).click()
      assert.equal(await fieldOf(cluster, ['cm', 'short'], '{.metadata.name}'), 'short')
      await page.keyboard.press('D')
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('heading', { name: 'short does not exist' }).waitFor()
      await page.getByRole('list', { name: 'Versions' }).getByText('deleted').waitFor()
    },
  },
  {
    name: 'ARC-16 a node is cordoned and uncordoned',
    run: async ({ page, open, cluster }) => {
      const node = await fieldOf(cluster, ['nodes'], '{.items[0].metadata.name}')
      await open(`#/object/nodes/-/${node}/summary`)
      await page.getByRole('region', { name: 'Capacity' }).waitFor()
      await page.getByRole('button', { name: 'Cordon', exact: true }).click()
      await page.getByRole('button', { name: 'Uncordon' }).waitFor()
      assert.equal(await fieldOf(cluster, ['node', node], '{.spec.unschedulable}'), 'true')
      await page.getByRole('button', { name: 'Uncordon' }).click()
      await page.getByRole('button', { name: 'Cordon', exact: true }).waitFor()
      assert.equal(await fieldOf(cluster, ['node', node], '{.spec.unschedulable}'), '')
    },
  },
  {
    name: 'ARC-16 a drain says what it does, and evicts the pods of the node',
    run: async ({ page, open, cluster }) => {
      // A pod without a controller would not come back for the flows after this one.
      const kept = await fieldOf(cluster, ['pod', 'chatty'], '{.spec.nodeName}')
      const nodes = (await fieldOf(cluster, ['pods', '-l', 'app=web'], '{.items[*].spec.nodeName}')).split(' ')
      const node = nodes.find((one) => one !== kept)
      assert.ok(node, 'the pods of the Deployment are spread over nodes')
      await open(`#/object/nodes/-/${node}/summary`)
      await page.getByRole('button', { name: 'Drain' }).click()
      await page.getByText(/The node takes no new pods, and \d+ pods are evicted/).waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
      await page.getByText(/pods of \S+ are evicted/).waitFor()
      const left = () => fieldOf(cluster, ['pods', '-l', 'app=web', '--field-selector', `spec.nodeName=${node}`], '{.items[*].metadata.name}')
      await eventually('an empty node', 20_000, left, (names) => names === '')
      await cluster.must(['uncordon', node])
    },
  },
  {
    name: 'ARC-16 why shows each filter’s verdict on each node, and what would have to change',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/huge/why')
      const matrix = page.getByRole('region', { name: 'Nodes and filters' })
      await matrix.getByRole('columnheader', { name: 'NodeResourcesFit' }).waitFor()
      await matrix
        .getByText(/request 84 less of cpu/)
        .first()
        .waitFor()
      await matrix
        .getByTitle(/NodeResourcesFit refuses .*: Insufficient cpu/)
        .first()
        .waitFor()
    },
  },
  {
    name: 'ARC-16 the scheduling view lists the pods without a node, and explains the one that is chosen',
    run: async ({ page, open }) => {
      await open('#/scheduling?ns=*')
      await page.getByRole('navigation', { name: 'Pods without a node' }).getByRole('link', { name: /huge/ }).click()
      await page.getByText('Insufficient cpu').first().waitFor()
      await page.getByLabel('Pod as namespace/name').fill('default/chatty')
      await page.keyboard.press('Enter')
      await page.getByText(/Scheduled on/).waitFor()
    },
  },
  {
    name: 'ARC-16 the log of a pod is text, is searched, and can be cut to what was found',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/chatty/logs')
      const log = page.getByRole('log')
      await log.getByText('<script>alert(1)</script>').waitFor()
      await log.getByText('red line', { exact: true }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('NEEDLE')
      assert.equal(await log.locator('mark').textContent(), 'needle')
      await page.getByLabel('only these lines').check()
      await log.getByText('plain line').waitFor({ state: 'detached' })
      await page.getByText('1 lines').waitFor()
    },
  },
  {
    name: 'ARC-16 the logs of a Deployment’s pods are shown together, each line with its pod, and those of a rollout join them',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
      const running = ['pods', '-l', 'app=web', '--field-selector', 'status.phase=Running']
      const shown = async () => {
        const names = (await fieldOf(cluster, running, '{.items[*].metadata.name}')).split(' ')
        for (const name of names) await page.getByRole('log').getByText(`${name} hello from web`).waitFor()
      }
      await open('#/object/deployments.apps/default/web/logs')
      await shown()
      await cluster.must(['rollout', 'restart', 'deployment/web'])
      await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
      await shown()
    },
  },
  {
    name: 'ARC-16 a shell shows what its program prints, and says when it has ended',
    run: async ({ page, open }) => {
      await open('#/object/pods/default/chatty/shell')
      await page.getByText('you are in a shell').first().waitFor()
      await page.getByText('The shell has ended.').waitFor()
      await page.getByRole('button', { name: 'Connect again' }).click()
      await page.getByText('The shell has ended.').waitFor()
    },
  },
  {
    name: 'ARC-16 owners and dependants are a tree from the topmost owner',
    run: async ({ page, open, cluster }) => {
      const pod = await fieldOf(cluster, ['pods', '-l', 'app=web'], '{.items[0].metadata.name}')
      await open(`#/object/pods/default/${pod}/related`)
      const tree = page.getByRole('region', { name: 'Owners and dependants' })
      await tree.getByRole('link', { name: pod }).waitFor()
      await tree.getByRole('link', { name: 'web', exact: true }).click()
      await page.getByRole('heading', { name: 'Deployment web' }).waitFor()
    },
  },
  {
    name: 'ARC-16 managed fields are shown by their writer',
    run: async ({ page, open }) => {
      await open('#/object/deployments.apps/default/web/summary')
      const writers = page.getByRole('region', { name: 'Writers of fields' })
      await writers
        .getByRole('button', { name: /kubectl-client-side-apply/ })
        .first()
        .click()
      await writers.getByText(/spec\.selector/).waitFor()
    },
  },
  {
    name: 'LRN-02 the history of an object names each writer and field, and the values before and after',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['patch', 'cm', 'prices', '-p', '{"data":{"milk":"1"}}'])
      await cluster.must(['patch', 'cm', 'prices', '-p', '{"data":{"milk":"2"}}'])
      await open('#/object/configmaps/default/prices/history')
      const versions = page.getByRole('list', { name: 'Versions' })
      await versions
        .getByText(/kubectl-patch/)
        .first()
        .waitFor()
      const change = versions.locator('.change').filter({ hasText: 'data.milk' }).first()
      assert.deepEqual([await change.locator('del').textContent(), await change.locator('ins').textContent()], ['1', '2'])
    },
  },
  {
    name: 'LRN-02 the slider shows a deleted object at the revision when it was there, and what has changed since',
    run: async ({ page, open, cluster }) => {
      const revision = await fieldOf(cluster, ['cm', 'gone'], '{.metadata.resourceVersion}')
      await cluster.must(['delete', 'configmap', 'gone'])
      await open(`#/past?ns=default&kind=configmaps&revision=${revision}`)
      await page.getByRole('row').getByRole('link', { name: 'gone' }).waitFor()
      const changed = page.getByRole('complementary', { name: 'Changed since then' })
      await changed.getByText('gone').waitFor()
      await cluster.must(['create', 'configmap', 'later'])
      await changed.getByText('later').waitFor()
      await page.getByRole('button', { name: 'now' }).click()
      await page.getByRole('row').getByRole('link', { name: 'gone' }).waitFor({ state: 'detached' })
      await page.getByRole('slider', { name: 'Revision' }).fill(revision)
      await page.getByRole('row').getByRole('link', { name: 'gone' }).waitFor()
    },
  },
  {
    name: 'ARC-16 the access view lists what the user may do, and says which rule allows something',
    run: async ({ page, open }) => {
      await open('#/access')
      await page.getByRole('region', { name: 'What I can do' }).getByRole('row').nth(1).waitFor()
      await page.getByRole('textbox', { name: 'User' }).fill('jane')
      await page.getByRole('button', { name: 'Ask' }).click()
      await page.getByRole('region', { name: 'Ask about a user' }).getByText('no', { exact: true }).waitFor()
      await page.getByRole('textbox', { name: 'User' }).fill('system:serviceaccount:kube-system:deployment-controller')
      await page.getByRole('textbox', { name: 'Verb', exact: true }).fill('delete')
      await page.getByRole('textbox', { name: 'Resource', exact: true }).fill('replicasets')
      await page.getByRole('button', { name: 'Ask' }).click()
      await page
        .getByText(/ClusterRoleBinding\/system:controller:deployment-controller: .*delete/)
        .first()
        .waitFor()
    },
  },
  {
    name: 'ARC-17 the live view shows requests, writes, watches and leases of the running cluster',
    run: async ({ page, open }) => {
      await open('#/live')
      await page
        .getByRole('article', { name: 'Clients' })
        .filter({ hasText: /open streams[1-9]/ })
        .waitFor()
      await page
        .getByRole('article', { name: 'Leases' })
        .getByText(/^apiserver-/)
        .first()
        .waitFor()
      await page
        .getByRole('article', { name: 'Requests a second' })
        .getByText(/GET|LIST|WATCH/)
        .first()
        .waitFor()
      await page.getByRole('img', { name: /Writes a second: .* now/ }).waitFor()
    },
  },
]

runFlows('e2e-ui-objects', ['--simulated-nodes', '3', '--history', '1h'], setUp, flows)

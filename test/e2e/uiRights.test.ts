/** The page of `skiff ui` for a user with few rights (ARC-16): each view shows what the user may see, and the server's refusal in place of the rest, in Chromium. */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { LocalCluster } from './support/localCluster.ts'
import { asUser } from './support/otherUsers.ts'
import { type Flow, runFlows, type Visit } from './support/pageFlows.ts'

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
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
kind: Pod
metadata: {name: huge}
spec: {containers: [{name: main, image: example.com/huge:1, resources: {requests: {cpu: "100"}}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: door}
stringData: {code: open-sesame}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: looker}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looker}
rules:
- {apiGroups: ["", apps], resources: [pods, services, deployments], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: looker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: looker}
subjects: [{kind: ServiceAccount, name: looker, namespace: default}]
`

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web', '--timeout=60s'])
}

const podOf = (cluster: LocalCluster) => cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[0].metadata.name}'])

/** The server's words, whichever article or list of names stands around them. */
const cannot = (what: string) => `cannot ${what}`

/** Each view with its refusal, and with what it still shows of what the user may see. POD is a pod of the Deployment. */
const refusals: readonly (readonly [address: string, refusal: string, shown?: string])[] = [
  ['overview', cannot('list resource "nodes"'), 'Deployments'],
  ['scheduling?pod=default/huge', cannot('get path "/debug/scheduling"'), 'Without a node'],
  ['controllers', cannot('get path "/metrics"')],
  ['past', cannot('get path "/skiff/revisions"')],
  ['capacity', cannot('list resource "nodes"')],
  ['helm?ns=default', cannot('list resource "secrets"')],
  ['list/secrets?ns=default', cannot('list resource "secrets"')],
  ['list/nodes', cannot('list resource "nodes"')],
  ['object/secrets/default/door/yaml', cannot('list resource "secrets"')],
  ['object/pods/default/POD/events', cannot('list resource "events"'), 'Summary'],
  ['object/pods/default/POD/calls', cannot('get resource "nodecalls"'), 'Summary'],
  ['object/pods/default/POD/history', cannot('get path "/skiff/revisions"'), 'Summary'],
  ['object/services/default/web/rules', cannot('list resource "nodes"'), 'Summary'],
  ['object/pods/default/huge/why', 'The scheduler’s view is not shown', 'Explanation'],
]

const seen: readonly Flow[] = refusals.map(([address, refusal, shown]) =>
  asUser('looker', {
    name: `ARC-16 a user with few rights sees ${JSON.stringify(refusal)} in ${address}`,
    run: async ({ page, cluster, served }) => {
      await page.goto(`${served.origin}/#/${address.replace('POD', await podOf(cluster))}`)
      await page.getByText(refusal).first().waitFor()
      if (shown !== undefined)
        await page
          .getByText(shown)
          .or(page.getByRole('region', { name: shown }))
          .first()
          .waitFor()
      assert.doesNotMatch((await page.locator('main').textContent()) ?? '', /b3Blbi1zZXNhbWU|open-sesame/)
    },
  }),
)

/** A write that is refused leaves the field of the cluster as it was. */
const refused = (what: string, address: string, act: (page: Page, visit: Visit) => Promise<void>, message: RegExp, field: readonly string[]): Flow =>
  asUser('looker', {
    name: `ARC-16 a user with few rights ${what}: the server refuses, and the cluster is as it was`,
    run: async (visit) => {
      const { page, cluster, open } = visit
      const read = () => cluster.must(['get', ...field])
      const before = await read()
      await open(`#/${address.replace('POD', await podOf(cluster))}`)
      await act(page, visit)
      await page.getByText(message).first().waitFor()
      assert.equal(await read(), before)
    },
  })

const confirm = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true }).click()

const writes: readonly Flow[] = [
  refused(
    'restarts a Deployment',
    'object/deployments.apps/default/web/summary',
    async (page) => {
      await page.getByRole('button', { name: 'Restart' }).click()
      await confirm(page, 'Restart')
    },
    /cannot patch resource "deployments"/,
    ['deployment', 'web', '-o', 'jsonpath={.metadata.generation}'],
  ),
  refused(
    'rolls a Deployment back',
    'object/deployments.apps/default/web/summary',
    (page) => page.getByRole('button', { name: 'Roll back' }).click(),
    /cannot list resource "replicasets"/,
    ['deployment', 'web', '-o', 'jsonpath={.metadata.generation}'],
  ),
  refused(
    'starts a debug container',
    'object/pods/default/POD/shell',
    async (page) => {
      await page.getByRole('button', { name: 'Debug container…' }).click()
      await page.getByLabel('Image').fill('example.com/debug:1')
      await confirm(page, 'Start')
    },
    /cannot \w+ resource "pods\/ephemeralcontainers"/,
    ['pods', '-o', 'jsonpath={.items[*].spec.ephemeralContainers}'],
  ),
]

const own: readonly Flow[] = [
  asUser('looker', {
    name: 'ARC-16 owners and dependants of a pod are shown as far as a user with few rights may list them',
    run: async ({ page, open, cluster }) => {
      await open(`#/object/pods/default/${await podOf(cluster)}/related`)
      const tree = page.getByRole('region', { name: 'Owners and dependants' })
      await tree.getByRole('link', { name: await podOf(cluster) }).waitFor()
      assert.equal(await tree.getByRole('link', { name: /^web-[a-z0-9]+$/ }).count(), 1, 'the ReplicaSet is named by the reference of the pod')
    },
  }),
]

const shell: readonly Flow[] = [
  asUser('looker', {
    name: 'ARC-16 a shell that the server refuses shows the message of its Status, and a file of the container too',
    run: async ({ page, open, cluster }) => {
      const pod = await podOf(cluster)
      await open(`#/object/pods/default/${pod}/shell`)
      const refusal = new RegExp(`pods "${pod}" is forbidden: User "system:serviceaccount:default:looker" cannot \\w+ resource "pods/exec"`)
      await page.getByRole('region', { name: 'Shell' }).getByRole('status').getByText(refusal).waitFor()
      await page.getByRole('button', { name: 'Connect again' }).waitFor()
      await open(`#/object/pods/default/${pod}/files`)
      await page.getByRole('button', { name: 'Download' }).click()
      await page.getByText(refusal).waitFor()
    },
  }),
]

const grants = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: granted}
rules:
- {apiGroups: [""], resources: [secrets, pods/log], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: granted}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: granted}
subjects: [{kind: ServiceAccount, name: looker, namespace: default}]
`

const granted: readonly Flow[] = [
  asUser('looker', {
    name: 'ARC-16 a right that is granted while the page is open shows a list and a log that were refused, without a reload',
    run: async ({ page, context, open, served, cluster }) => {
      await open('#/list/secrets?ns=default')
      await page.getByText(cannot('list resource "secrets"')).first().waitFor()
      const log = await context.newPage()
      await log.goto(`${served.origin}/#/object/pods/default/${await podOf(cluster)}/logs`)
      await log.getByText(cannot('get resource "pods/log"')).waitFor()
      for (const one of [page, log]) await one.evaluate('window.isTheSame = true')
      await cluster.mustWith(grants, ['apply', '-f', '-'])
      await page.getByRole('row').filter({ hasText: 'door' }).waitFor()
      await log.getByRole('log').getByText('started on a simulated node').first().waitFor()
      await log.getByText(cannot('get resource "pods/log"')).waitFor({ state: 'detached' })
      for (const one of [page, log]) assert.equal(await one.evaluate('window.isTheSame'), true, 'it was not loaded again')
    },
  }),
]

runFlows('e2e-ui-rights', ['--simulated-nodes', '2', '--history', '1h'], setUp, [...seen, ...writes, ...own, ...shell, ...granted])

/** The `Why` part of objects' pages (ARC-16): for each kind that waits the cause, and that the answer follows when the cause is gone, in Chromium. */
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { LocalCluster } from './support/localCluster.ts'
import { asUser } from './support/otherUsers.ts'
import { type Flow, runFlows } from './support/pageFlows.ts'
import { viewFlow } from './support/viewFlow.ts'
import { objects } from './support/waitingObjects.ts'

async function setUp(cluster: LocalCluster): Promise<void> {
  await cluster.mustWith(objects, ['apply', '-f', '-'])
}

const explanation = (page: Page) => page.getByRole('region', { name: 'Explanation' })
const causes = (page: Page) => page.getByRole('list', { name: 'Causes' }).getByRole('listitem')

/** Opens an object's page, and goes to the part that explains it. */
async function openWhy(page: Page, open: (address: string) => Promise<void>, object: string): Promise<void> {
  await open(`#/object/${object}/summary`)
  await page.getByRole('link', { name: 'Why', exact: true }).click()
  await explanation(page).waitFor()
}

interface Waiting {
  /** A subject with its condition, for the name of the test. */
  readonly what: string
  /** KIND/NAMESPACE/NAME of the page's address. */
  readonly object: string
  readonly cause: string
  /** What the cluster's user does, in the words of kubectl, with the text for its standard input. `next`: the command that the page shows. */
  readonly repair: 'next' | readonly string[] | { readonly apply: string }
}

const volume = JSON.stringify({
  ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'fast-1' } },
  spec: { storageClassName: 'fast', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } },
})

const waiting: readonly Waiting[] = [
  {
    what: 'a Deployment whose image cannot be pulled',
    object: 'deployments.apps/default/pulling',
    cause: 'image example.com/pulling:1 cannot be pulled',
    repair: ['patch', 'deployment', 'pulling', '--type=json', '-p', '[{"op":"remove","path":"/spec/template/metadata/annotations"}]'],
  },
  {
    what: 'a Deployment whose rollout is paused',
    object: 'deployments.apps/default/paused',
    cause: 'its rollout is paused',
    repair: 'next',
  },
  {
    what: 'a StatefulSet whose first pod has no node',
    object: 'statefulsets.apps/default/ordered',
    cause: 'pod ordered-0: no node fits',
    repair: ['label', 'nodes', '--all', 'disk=ssd'],
  },
  {
    what: 'a DaemonSet whose nodeSelector fits no node',
    object: 'daemonsets.apps/default/agents',
    cause: 'no node has the labels that its pods ask for: nodeSelector agents=yes',
    repair: ['label', 'nodes', '--all', 'agents=yes'],
  },
  {
    what: 'a ReplicaSet whose pods name a ServiceAccount that does not exist',
    object: 'replicasets.apps/default/robots',
    cause: 'its pods name ServiceAccount robot, which does not exist',
    repair: 'next',
  },
  {
    what: 'a Job that is suspended',
    object: 'jobs.batch/default/suspended',
    cause: 'it is suspended',
    repair: 'next',
  },
  {
    what: 'a CronJob that is suspended',
    object: 'cronjobs.batch/default/nightly',
    cause: 'it is suspended',
    repair: 'next',
  },
  {
    what: 'a claim that no volume fits',
    object: 'persistentvolumeclaims/default/data',
    cause: 'its StorageClass fast does not exist',
    repair: { apply: volume },
  },
  {
    what: 'a Service without endpoints',
    object: 'services/default/lonely',
    cause: 'its selector selects no pod that runs: app=lonely; the nearest is almost with app=lone',
    repair: ['label', 'pod', 'almost', 'app=lonely', '--overwrite'],
  },
  {
    what: 'a PodDisruptionBudget that selects no pod',
    object: 'poddisruptionbudgets.policy/default/unused',
    cause: 'its selector selects no pod',
    repair: ['label', 'pod', 'almost', 'budget=yes'],
  },
  {
    what: 'a CustomResourceDefinition whose name another one has',
    object: 'customresourcedefinitions.apiextensions.k8s.io/-/others.example.com',
    cause: 'another resource of its group has one of its names',
    repair: ['delete', 'crd', 'widgets.example.com'],
  },
  {
    what: 'a webhook whose Service does not exist',
    object: 'validatingwebhookconfigurations.admissionregistration.k8s.io/-/gate',
    cause: 'its Service default/gate does not exist',
    repair: ['delete', 'validatingwebhookconfiguration', 'gate'],
  },
]

const repairs: readonly Flow[] = waiting.map(({ what, object, cause, repair }) => ({
  name: `ARC-16 the page says why ${what} waits, and that it does not any more after the repair`,
  run: async ({ page, open, cluster }) => {
    await openWhy(page, open, object)
    const item = causes(page).filter({ hasText: cause }).first()
    await item.waitFor()
    await item.getByText('Shown by').waitFor()
    if (repair === 'next') await run(cluster, (await item.locator('.next code').textContent()) ?? '')
    else if ('apply' in repair) await cluster.mustWith(repair.apply, ['apply', '-f', '-'])
    else await cluster.must(repair)
    const isDeleted = object.endsWith('/gate')
    const end = isDeleted ? page.getByRole('heading', { name: 'gate does not exist' }) : explanation(page).getByText('does not wait', { exact: true })
    await end.waitFor({ timeout: 60_000 })
  },
}))

/** Runs a command that the page shows, as its user would. */
async function run(cluster: LocalCluster, command: string): Promise<void> {
  assert.match(command, /^kubectl /)
  const { code, stderr } = await cluster.run('sh', ['-c', command])
  assert.equal(code, 0, `${command}: ${stderr}`)
}

const firstOf = (cluster: LocalCluster, app: string) => cluster.must(['get', 'pods', '-l', `app=${app}`, '-o', 'jsonpath={.items[0].metadata.name}'])

const chains: readonly Flow[] = [
  {
    name: 'ARC-16 the explanation of an Ingress leads to its Service, whose explanation names the selector',
    run: async ({ page, open }) => {
      await openWhy(page, open, 'ingresses.networking.k8s.io/default/front')
      await causes(page).filter({ hasText: 'Service empty: its selector selects no pod that runs: app=empty' }).getByRole('link').click()
      await page.getByRole('heading', { name: 'Service empty' }).waitFor()
      await causes(page).filter({ hasText: 'its selector selects no pod that runs: app=empty' }).waitFor()
      assert.match(page.url(), /#\/object\/services\/default\/empty\/why$/)
    },
  },
  {
    name: 'ARC-16 the explanation of a Deployment leads to its pod, which has the verdict of each filter on each node',
    run: async ({ page, open, cluster }) => {
      await openWhy(page, open, 'deployments.apps/default/large')
      await causes(page).filter({ hasText: 'no node fits' }).getByRole('link').click()
      await page.getByRole('heading', { name: `Pod ${await firstOf(cluster, 'large')}` }).waitFor()
      await page.getByRole('region', { name: 'Nodes and filters' }).getByText('Insufficient cpu').first().waitFor()
    },
  },
  {
    name: 'ARC-16 a pod whose container crashes has its exit code in the explanation, and the command for its log in the clipboard',
    run: async ({ page, open, cluster, context, served }) => {
      await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: served.origin })
      const name = await firstOf(cluster, 'crashing')
      await openWhy(page, open, `pods/default/${name}`)
      const item = causes(page).filter({ hasText: 'container main ended with exit code 9' })
      await item.getByRole('button', { name: /^Copy/ }).click()
      await page.getByText('The command is copied').waitFor()
      assert.match(await page.evaluate<string>('navigator.clipboard.readText()'), new RegExp(`^kubectl logs ${name} -c main -n default`))
      assert.equal(await page.getByRole('region', { name: 'Nodes and filters' }).count(), 0, 'the pod has a node')
    },
  },
  {
    name: 'ARC-16 a Job that failed names its limit and the exit code of its last pod',
    run: async ({ page, open }) => {
      await openWhy(page, open, 'jobs.batch/default/failing')
      await causes(page)
        .filter({ hasText: /its pods failed more often than spec\.backoffLimit allows; pod failing-\S+: container main ended with exit code 7/ })
        .waitFor({ timeout: 60_000 })
    },
  },
  {
    name: 'ARC-16 a node that is not ready says what its kubelet reports, and a cordoned one that it is cordoned',
    run: async ({ page, open, cluster }) => {
      const node = await cluster.must(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}'])
      await openWhy(page, open, `nodes/-/${node}`)
      await explanation(page).getByText('does not wait', { exact: true }).waitFor()
      await cluster.must(['annotate', 'node', node, 'skiff.dev/simulated-failure=the runtime is broken'])
      await cluster.must(['cordon', node])
      await causes(page).filter({ hasText: 'the runtime is broken' }).waitFor({ timeout: 60_000 })
      const cordoned = causes(page).filter({ hasText: 'it takes no new pods: it is cordoned' })
      await run(cluster, (await cordoned.locator('.next code').textContent()) ?? '')
      await cordoned.waitFor({ state: 'detached' })
      await cluster.must(['annotate', 'node', node, 'skiff.dev/simulated-failure-'])
      await explanation(page).getByText('does not wait', { exact: true }).waitFor({ timeout: 60_000 })
    },
  },
]

const others: readonly Flow[] = [
  {
    name: 'ARC-16 an object that is being deleted gets an explanation that names the finalizer which keeps it',
    run: async ({ page, open, cluster }) => {
      await open('#/object/configmaps/default/kept/summary')
      await page.getByRole('region', { name: 'About' }).waitFor()
      assert.equal(await page.getByRole('link', { name: 'Why', exact: true }).count(), 0, 'a ConfigMap waits for nothing')
      await cluster.must(['delete', 'configmap', 'kept', '--wait=false'])
      await page.getByRole('link', { name: 'Why', exact: true }).click()
      await causes(page).filter({ hasText: 'the controller that owns the finalizer example.com/keep has not removed it' }).waitFor()
      await cluster.must(['patch', 'configmap', 'kept', '--type=json', '-p', '[{"op":"remove","path":"/metadata/finalizers"}]'])
      await page.getByRole('heading', { name: 'kept does not exist' }).waitFor()
    },
  },
  {
    name: 'ARC-16 a namespace that stays in Terminating lists what is left in it, with its finalizers',
    run: async ({ page, open, cluster }) => {
      await cluster.must(['delete', 'namespace', 'team', '--wait=false'])
      await openWhy(page, open, 'namespaces/-/team')
      await explanation(page).getByText('example.com/keep').first().waitFor({ timeout: 60_000 })
      await cluster.must(['patch', 'configmap', 'left', '-n', 'team', '--type=json', '-p', '[{"op":"remove","path":"/metadata/finalizers"}]'])
      await page.getByRole('heading', { name: 'team does not exist' }).waitFor({ timeout: 60_000 })
    },
  },
  {
    name: 'ARC-16 an autoscaler shows its target, its bounds and what its conditions say',
    run: async ({ page, open }) => {
      await openWhy(page, open, 'horizontalpodautoscalers.autoscaling/default/large')
      await explanation(page).getByText('Deployment/large').waitFor()
      await explanation(page)
        .getByText(/ScalingActive/)
        .first()
        .waitFor({ timeout: 60_000 })
    },
  },
  asUser('looker', {
    name: 'ARC-16 a user who may read Deployments alone gets an explanation that says what was not read, and concludes nothing from it',
    run: async ({ page, open }) => {
      await openWhy(page, open, 'deployments.apps/default/large')
      await page.getByRole('list', { name: 'Not read' }).getByText('you may not list replicasets.apps in the namespace default').waitFor()
      await explanation(page).getByText('Nothing that was read shows why.').waitFor()
      assert.equal(await causes(page).count(), 0)
    },
  }),
  ...['deployments.apps/default/large', 'jobs.batch/default/failing', 'namespaces/-/default', 'horizontalpodautoscalers.autoscaling/default/large'].map(
    (object) => viewFlow(`object/${object}/why`),
  ),
]

runFlows('e2e-ui-why', ['--simulated-nodes', '3'], setUp, [...repairs, ...chains, ...others])

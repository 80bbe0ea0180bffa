/**
 * KEDA as upstream's manifests deploy it, on a cluster with a real node: three Deployments, whose certificates the operator makes and renews. A pod with the length of
 * a queue, which the operator asks through a Service, scales a Deployment of real pods.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { createExec } from '#host/exec'
import { busyboxImage } from '#kubelet/images/busyboxImage'
import { ociTar, type TarEntry } from '#kubelet/images/ociTar'
import { LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { install } from '../support/install.ts'
import { apply, kubectl, refusal, step, until } from '../support/kubectl.ts'
import { deployment, long, most, scaledObject, type Trigger, targets } from './objects.ts'
import { apiService, system } from './programs.ts'
import { Replicas } from './replicas.ts'
import { scaleUpAndDown } from './scaling.ts'

const { WORK = '' } = process.env
const image = 'docker.io/library/busybox:1'
/** By the command of the manifests: the program that Go builds. */
const programs = { keda: 'operator', 'keda-adapter': 'adapter', 'keda-admission-webhooks': 'webhooks' }
/** The user of upstream's image, which has to be another one than root. */
const user = '65532'
const manifest = fs.readFileSync(path.join(WORK, 'keda.yaml'), 'utf8')
const deployments = ['keda-operator', 'keda-metrics-apiserver', 'keda-admission']
const port = 8080
const queue = 'queue'
const trigger: Trigger = {
  type: 'metrics-api',
  metadata: { url: `http://${queue}.default.svc.cluster.local/length.json`, valueLocation: 'length', ...targets },
}

/** One image with the three programs, under each name for which the manifests ask. */
async function loadImages(cluster: LocalCluster): Promise<void> {
  const names = [...manifest.matchAll(/^\s*image: (ghcr\.io\/\S+)/gm)].map(([, name = '']) => name)
  assert.equal(names.length, Object.keys(programs).length, String(names))
  const files = Object.entries(programs).map(([name, program]): TarEntry => {
    return { path: name, type: 'file', mode: 0o755, data: fs.readFileSync(path.join(WORK, 'bin', program)) }
  })
  const tars = { keda: ociTar({ names, user, files }), busybox: await busyboxImage(createExec(), [image]) }
  const paths = Object.entries(tars).map(([name, data]) => {
    const file = path.join(cluster.dir, `${name}.tar`)
    fs.writeFileSync(file, data)
    return file
  })
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, ...paths])
  assert.equal(code, 0, stderr)
}

/** An image that is loaded cannot be pulled. */
const withoutPulling = (document: string) => document.replaceAll('imagePullPolicy: Always', 'imagePullPolicy: IfNotPresent')
const inShell = (script: string) => ({ image, command: ['sh', '-c', `trap "exit 0" TERM; ${script} & wait`] })

async function setLength(length: number): Promise<void> {
  await kubectl(['exec', `deployment/${queue}`, '--', 'sh', '-c', `echo '{"length": ${length}}' > /www/length.json`])
}

async function installation(): Promise<void> {
  await step(
    'AUT-04 the operator, the metrics adapter and the webhooks become available on a real node, with the certificates that the operator made',
    async () => {
      await install(manifest, withoutPulling)
      for (const name of deployments) await kubectl(['rollout', 'status', `deployment/${name}`, '-n', system, '--timeout=240s'])
      await kubectl(['wait', '--for=condition=Available', '--timeout=120s', `apiservice/${apiService}`])
    },
  )
}

async function scaling(replicas: Replicas): Promise<void> {
  await step(`AUT-04 a queue behind a Service scales a Deployment of real pods from 0 to ${most} and to 0`, async () => {
    const serve = `echo '{"length": 0}' > /www/length.json; httpd -f -p ${port} -h /www`
    const service = { spec: { selector: { app: queue }, ports: [{ port: 80, targetPort: port }] } }
    await apply(deployment(queue, 1, inShell(serve)), { apiVersion: 'v1', kind: 'Service', metadata: { name: queue, namespace: 'default' }, ...service })
    await replicas.until(queue, 1)
    const change = (active: boolean) => setLength(active ? long : 0)
    await scaleUpAndDown(replicas, 'worker', trigger, { change, container: inShell('sleep 100000') })
  })

  await step('AUT-04 the webhook on a real node refuses a second ScaledObject for a Deployment', async () => {
    const second = scaledObject('second', trigger, { scaleTargetRef: { name: 'worker' } })
    await until(
      'it is refused',
      () => refusal(second),
      (text) => /is already managed by the ScaledObject 'worker'/.test(text),
    )
  })
}

async function showState(): Promise<void> {
  const show = async (...args: string[]) => console.log(await kubectl(args).catch(String))
  await show('get', 'nodes,pods,deployments,hpa,scaledobjects,apiservices', '-A', '-o', 'wide')
  await show('get', 'events', '-A', '--sort-by=.lastTimestamp')
  for (const name of deployments) await show('logs', `deployment/${name}`, '-n', system, '--tail=30')
}

async function onRealNode(): Promise<void> {
  const obstacle = obstacleToCluster(true)
  if (obstacle) {
    console.log(`not on a real node: ${obstacle}`)
    return
  }
  const cluster = await LocalCluster.start('keda', ['--nodes', '1'])
  // The steps' kubectl talks to this cluster, not to the one that runSuites.ts started.
  process.env.KUBECONFIG = cluster.env.KUBECONFIG
  const replicas = new Replicas()
  try {
    await loadImages(cluster)
    await installation()
    await scaling(replicas)
  } catch (error) {
    console.log((error as Error).stack)
    await showState()
    process.exitCode = 1
  } finally {
    await replicas.stop()
    await cluster.delete()
  }
}

await onRealNode()

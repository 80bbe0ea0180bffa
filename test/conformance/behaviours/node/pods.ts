/** The life of a pod as its clients see it. Upstream: test/e2e/common/node/pods.go. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type RawData, WebSocket } from 'ws'
import type { Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { parseYaml } from '#api/machinery/yaml'
import { nodes, pods, services } from '#client/builtIn'
import { type Kubeconfig, resolveKubeconfig } from '#client/kubeconfig'
import { createRealClock } from '#main/realClock'
import type { BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, isReady } from '../context.ts'

/** Messages of a WebSocket at a path of the API server, with the user's certificate, until it closes. */
async function webSocketMessages({ cluster }: BehaviourContext, path: string, protocol: string): Promise<Buffer[]> {
  const config = parseYaml(await readFile(cluster.env.KUBECONFIG ?? '', 'utf8')) as Kubeconfig
  const { transport } = await resolveKubeconfig(config, { clock: createRealClock(), readFile: (file) => readFile(file) })
  const { ca, cert, key } = transport.tls ?? {}
  const socket = new WebSocket(`${transport.server.replace('https', 'wss')}${path}`, [protocol], { ca, cert, key } as WebSocket.ClientOptions)
  const messages: Buffer[] = []
  socket.on('message', (message: RawData) => messages.push(Buffer.from(message as Buffer)))
  await once(socket, 'close')
  return messages
}

export const podsGroup: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Pods',
  rows: ['KUB-02', 'KUB-09', 'KUB-17'],
  behaviours: [
    {
      name: 'host IP',
      run: async ({ readyPod, get }) => {
        const { spec, status } = await readyPod({ script: 'sleep 600' })
        const node = await get(nodes, spec.nodeName ?? '')
        assert.ok(node.status?.addresses?.some(({ address }) => address === status?.hostIP))
      },
    },
    {
      name: 'submit + remove with watch',
      run: async (context) => {
        const { client, namespace } = context
        const { metadata } = await client.of(pods).list({ namespace, labelSelector: 'which=watched' })
        const stop = new AbortController()
        const seen: { type: string; deleting: boolean; grace: number | undefined }[] = []
        const watching = (async () => {
          const events = client.of(pods).watch({
            namespace,
            labelSelector: 'which=watched',
            resourceVersion: metadata?.resourceVersion ?? '',
            signal: AbortSignal.any([stop.signal, context.signal]),
          })
          for await (const batch of events) {
            for (const { type, object } of batch)
              seen.push({ type, deleting: object.metadata.deletionTimestamp !== undefined, grace: object.metadata.deletionGracePeriodSeconds })
            if (seen.at(-1)?.type === 'DELETED') return
          }
        })()
        const pod = await context.readyPod({ labels: { which: 'watched' }, script: 'sleep 600' })
        await client.of(pods).delete({ namespace, name: pod.metadata.name ?? '' }, { gracePeriodSeconds: 5 })
        await watching
        stop.abort()
        assert.equal(seen[0]?.type, 'ADDED')
        assert.ok(seen.some(({ type, deleting, grace }) => type === 'MODIFIED' && deleting && grace === 5))
        assert.deepEqual((await client.of(pods).list({ namespace, labelSelector: 'which=watched' })).items, [])
      },
    },
    {
      name: 'label update',
      run: async ({ client, namespace, readyPod }) => {
        const pod = await readyPod({ labels: { time: 'before' }, script: 'sleep 600' })
        const current = await client.of(pods).get({ namespace, name: pod.metadata.name ?? '' })
        await client.of(pods).update({ ...current, metadata: { ...current.metadata, labels: { time: 'after' } } })
        const { items } = await client.of(pods).list({ namespace, labelSelector: 'time=after' })
        assert.deepEqual(
          items.map(({ metadata }) => metadata.name),
          [pod.metadata.name],
        )
      },
    },
    {
      name: 'activeDeadlineSeconds update terminates',
      run: async ({ client, namespace, readyPod, waitForPhase }) => {
        const pod = await readyPod({ script: 'sleep 600', spec: { restartPolicy: 'Always' } })
        const name = pod.metadata.name ?? ''
        await client.of(pods).patch({ namespace, name }, 'merge', { spec: { activeDeadlineSeconds: 5 } })
        const { status } = await waitForPhase(name, 'Failed')
        assert.equal(status?.reason, 'DeadlineExceeded')
      },
    },
    {
      name: 'service env vars',
      run: async ({ create, outputOf }) => {
        const service = await create(services, { metadata: { name: 'foo-service' }, spec: { ports: [{ port: 8765, targetPort: 8080 }] } })
        const output = await outputOf({ script: 'env' })
        const wanted = ['HOST', 'PORT', 'PORT_8765_TCP', 'PORT_8765_TCP_ADDR', 'PORT_8765_TCP_PORT', 'PORT_8765_TCP_PROTO']
        for (const name of ['SERVICE_HOST', 'SERVICE_PORT', ...wanted.slice(2)]) assert.match(output, new RegExp(`^FOO_SERVICE_${name}=`, 'm'))
        assert.match(output, new RegExp(`^FOO_SERVICE_SERVICE_HOST=${service.spec.clusterIP}$`, 'm'))
        assert.match(output, /^KUBERNETES_SERVICE_HOST=/m)
      },
    },
    {
      name: 'exec over WebSocket',
      run: async (context) => {
        const pod = await context.readyPod({ script: 'sleep 600' })
        const query = ['sh', '-c', 'echo out; echo err >&2'].map((part) => `command=${encodeURIComponent(part)}`).join('&')
        const path = `/api/v1/namespaces/${context.namespace}/pods/${pod.metadata.name}/exec?${query}&stdout=1&stderr=1`
        const messages = await webSocketMessages(context, path, 'v4.channel.k8s.io')
        const of = (channel: number) =>
          messages
            .filter((message) => message[0] === channel)
            .map((message) => message.subarray(1).toString())
            .join('')
        assert.equal(of(1), 'out\n')
        assert.equal(of(2), 'err\n')
        assert.equal((JSON.parse(of(3)) as { status: string }).status, 'Success')
      },
    },
    {
      name: 'logs over WebSocket',
      run: async (context) => {
        const pod = await context.runPod({ script: 'echo a line of the log' })
        const path = `/api/v1/namespaces/${context.namespace}/pods/${pod.metadata.name}/log?container=main`
        const messages = await webSocketMessages(context, path, 'binary.k8s.io')
        assert.equal(Buffer.concat(messages).toString(), 'a line of the log\n')
      },
    },
    {
      name: 'deletecollection',
      run: async ({ client, namespace, readyPod, eventually }) => {
        await Promise.all(['one', 'two', 'three'].map((name) => readyPod({ name, labels: { type: 'Testing' }, script: 'sleep 600' })))
        await client.of(pods).deleteCollection({ namespace, labelSelector: 'type=Testing' })
        await eventually(
          'the end of all three',
          async () => (await client.of(pods).list({ namespace, labelSelector: 'type=Testing' })).items.map(({ metadata }) => metadata.name),
          (names) => names.length === 0,
        )
      },
    },
    {
      name: 'patch status',
      run: async ({ client, namespace, readyPod }) => {
        const pod = await readyPod({ script: 'sleep 600' })
        const ref = { namespace, name: pod.metadata.name ?? '' }
        const condition = { type: 'example.com/checked', status: 'True', reason: 'Patched', message: 'by the test' }
        const patched = await client.of(pods).patch(ref, 'strategic', { status: { conditions: [condition] } }, { subresource: 'status' })
        const find = (object: Frozen<Pod>) => object.status?.conditions?.find(({ type }) => type === condition.type)
        assert.equal(find(patched)?.reason, 'Patched')
        assert.ok(isReady(patched), 'the others stay')
      },
    },
    {
      name: 'lifecycle + status replace',
      run: async ({ client, namespace, readyPod, eventually, waitUntilGone }) => {
        const pod = await readyPod({ labels: { life: 'cycle' }, script: 'sleep 600' })
        const ref = { namespace, name: pod.metadata.name ?? '' }
        const patched = await client.of(pods).patch(ref, 'strategic', { metadata: { labels: { patched: 'yes' } } })
        assert.deepEqual([patched.metadata.labels?.life, patched.metadata.labels?.patched], ['cycle', 'yes'])
        // The kubelet writes the status too: after a conflict, read again.
        const replace = async () => {
          const current = await client.of(pods).get(ref)
          const conditions = (current.status?.conditions ?? []).map((one) => (one.type === 'Ready' ? { ...one, status: 'False' } : one))
          return client.of(pods).updateStatus({ ...current, status: { ...current.status, conditions } })
        }
        const replaced = await eventually(
          'a status to be replaced',
          () => replace().catch(() => undefined),
          (object) => object !== undefined,
        )
        assert.ok(replaced && !isReady(replaced))
        await client.of(pods).deleteCollection({ namespace, labelSelector: 'patched=yes' })
        await waitUntilGone(pods, ref.name)
      },
    },
  ],
}

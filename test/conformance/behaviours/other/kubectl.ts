/** kubectl against running pods. Upstream: test/e2e/kubectl/{kubectl,logs}.go. */
import assert from 'node:assert/strict'
import { pods, services } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, busybox, podOf } from '../context.ts'
import { sleeper, templateOf } from '../workloads.ts'

const labels = { name: 'update-demo', version: 'nautilus' }

const controller = (replicas: number) => ({
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'demo' },
  spec: { replicas, selector: labels, template: templateOf(labels, { ...sleeper, container: { ports: [{ containerPort: 6379, name: 'server' }] } }) },
})

const apply = ({ kubectl }: BehaviourContext, object: object) => kubectl(['create', '-f', '-'], JSON.stringify(object))

/** So many pods of the controller run, and there are no others. */
const running = (context: BehaviourContext, count: number) =>
  context.eventually(
    `${count} running pods`,
    () => context.kubectl(['get', 'pods', '-l', 'name=update-demo', '-o', 'jsonpath={range .items[*]}{.status.phase}/{.metadata.deletionTimestamp} {end}']),
    (text) =>
      text.split(' ').filter(Boolean).length === count &&
      text
        .split(' ')
        .filter(Boolean)
        .every((one) => one === 'Running/'),
  )

const lines = 20

export const kubectlWithPods: BehaviourGroup = {
  sig: 'sig-cli',
  title: 'kubectl with pods',
  rows: ['EXP-03', 'KUB-25'],
  behaviours: [
    {
      name: 'update-demo RC create/stop',
      run: async (context) => {
        await apply(context, controller(2))
        await running(context, 2)
        await context.kubectl(['delete', '--grace-period=0', '--force', 'rc', 'demo'])
        await context.eventually(
          'nothing left',
          () => context.kubectl(['get', 'rc,pods', '-l', 'name=update-demo', '-o', 'name']),
          (text) => text === '',
        )
      },
    },
    {
      name: 'update-demo RC scale',
      run: async (context) => {
        await apply(context, controller(2))
        await running(context, 2)
        await context.kubectl(['scale', 'rc', 'demo', '--replicas=1', '--timeout=1m'])
        await running(context, 1)
        await context.kubectl(['scale', 'rc', 'demo', '--replicas=2', '--timeout=1m'])
        await running(context, 2)
      },
    },
    {
      name: 'describe rc/pod/service/node/namespace',
      run: async (context) => {
        await apply(context, controller(1))
        await context.kubectl(['expose', 'rc', 'demo', '--name=front', '--port=80', '--target-port=6379'])
        await running(context, 1)
        const [pod = ''] = (await context.kubectl(['get', 'pods', '-o', 'name'])).split('\n')
        const node = await context.kubectl(['get', pod, '-o', 'jsonpath={.spec.nodeName}'])
        const described: readonly (readonly [what: string, texts: readonly RegExp[]])[] = [
          [
            pod,
            [
              /^Name:\s+demo-/m,
              /^Namespace:\s+behaviour-/m,
              /^Node:\s+\S+-node-\d\/[\d.]+$/m,
              /^Status:\s+Running$/m,
              /^IP:\s+[\d.]+$/m,
              /^Controlled By:\s+ReplicationController\/demo$/m,
              /Image:\s+skiff\.test\/busybox/,
              /State:\s+Running/,
              /QoS Class:\s+BestEffort/,
            ],
          ],
          [
            'rc/demo',
            [
              /^Name:\s+demo$/m,
              /^Selector:\s+name=update-demo,version=nautilus$/m,
              /^Replicas:\s+1 current \/ 1 desired$/m,
              /^Pods Status:\s+1 Running \/ 0 Waiting \/ 0 Succeeded \/ 0 Failed$/m,
              /SuccessfulCreate/,
            ],
          ],
          [
            'service/front',
            [/^Type:\s+ClusterIP$/m, /^IP:\s+10\./m, /^Port:\s+<unset>\s+80\/TCP$/m, /^TargetPort:\s+6379\/TCP$/m, /^Endpoints:\s+[\d.]+:6379$/m],
          ],
          [
            `node/${node}`,
            [
              /^Name:\s+\S+-node-\d$/m,
              /^Labels:/m,
              /^CreationTimestamp:/m,
              /^Conditions:/m,
              /MemoryPressure/,
              /DiskPressure/,
              /PIDPressure/,
              /KubeletReady/,
              /Kubelet Version:\s+v1\.36/,
              /^Non-terminated Pods:/m,
            ],
          ],
          [`namespace/${context.namespace}`, [/^Name:\s+behaviour-/m, /^Status:\s+Active$/m, /^No resource quota\.$/m, /^No LimitRange resource\.$/m]],
        ]
        for (const [what, texts] of described) {
          const text = await context.kubectl(['describe', what])
          for (const wanted of texts) assert.match(text, wanted)
        }
      },
    },
    {
      name: 'expose creates services for an RC',
      run: async (context) => {
        await apply(context, controller(1))
        await running(context, 1)
        const see = async (name: string, port: number) => {
          const service = await context.get(services, name)
          assert.deepEqual(
            service.spec.ports?.map((one) => [one.port, one.targetPort]),
            [[port, 6379]],
          )
          await context.eventually(
            'its endpoint',
            () => context.kubectl(['get', 'endpoints', name, '-o', 'jsonpath={.subsets[*].ports[*].port}']),
            (text) => text === '6379',
          )
        }
        await context.kubectl(['expose', 'rc', 'demo', '--name=rm2', '--port=1234', '--target-port=6379'])
        await see('rm2', 1234)
        await context.kubectl(['expose', 'service', 'rm2', '--name=rm3', '--port=2345', '--target-port=6379'])
        await see('rm3', 2345)
      },
    },
    {
      name: 'label add/remove',
      run: async (context) => {
        await context.readyPod({ name: 'labelled', ...sleeper })
        await context.kubectl(['label', 'pods', 'labelled', 'testing-label=testing-label-value'])
        assert.match(await context.kubectl(['get', 'pod', 'labelled', '-L', 'testing-label']), /testing-label-value/)
        await context.kubectl(['label', 'pods', 'labelled', 'testing-label-'])
        assert.doesNotMatch(await context.kubectl(['get', 'pod', 'labelled', '-L', 'testing-label']), /testing-label-value/)
      },
    },
    {
      name: 'patch annotates pods',
      run: async (context) => {
        await apply(context, controller(1))
        await running(context, 1)
        const [pod = ''] = (await context.kubectl(['get', 'pods', '-o', 'name'])).split('\n')
        await context.kubectl(['patch', pod, '-p', '{"metadata":{"annotations":{"x":"y"}}}'])
        assert.equal(await context.kubectl(['get', pod, '-o', 'jsonpath={.metadata.annotations.x}']), 'y')
      },
    },
    {
      name: 'replace swaps the image',
      run: async (context) => {
        const { namespace } = context
        await context.kubectl(['run', 'swapped', `--image=${busybox}`, '--labels=run=swapped', '--', 'sleep', '600'])
        await context.waitForPhase('swapped', 'Running')
        const other = `${busybox.split(':')[0]}:2`
        const text = await context.kubectl(['get', 'pod', 'swapped', '-o', 'json'])
        await context.kubectl(['replace', '-f', '-'], text.replaceAll(`"${busybox}"`, `"${other}"`))
        assert.equal((await context.client.of(pods).get({ namespace, name: 'swapped' })).spec.containers[0]?.image, other)
      },
    },
    {
      name: 'run --restart=Never',
      run: async (context) => {
        await context.kubectl(['run', 'once', '--restart=Never', `--image=${busybox}`, '--', 'sh', '-c', 'exit 0'])
        const pod = await context.waitForPhase('once', 'Succeeded')
        assert.equal(pod.spec.restartPolicy, 'Never')
        assert.equal(pod.spec.containers[0]?.image, busybox)
      },
    },
    {
      name: 'server dry-run changes nothing',
      run: async (context) => {
        await context.kubectl(['run', 'dry', `--image=${busybox}`, '--', 'sleep', '600'])
        await context.waitForPhase('dry', 'Running')
        const patch = JSON.stringify({ spec: { containers: [{ name: 'dry', image: 'changed:1' }] } })
        await context.kubectl(['patch', 'pod', 'dry', '-p', patch, '--dry-run=server'])
        assert.equal((await context.get(pods, 'dry')).spec.containers[0]?.image, busybox)
      },
    },
    {
      name: 'logs with tail, limit-bytes, timestamps, since',
      run: async (context) => {
        const script = `i=0; while [ $i -lt ${lines} ]; do echo "line $i"; i=$((i+1)); done; sleep 600`
        await context.client.of(pods).create(podOf({ script }, { namespace: context.namespace, name: 'talks' }))
        const logs = (...flags: string[]) => context.kubectl(['logs', 'talks', ...flags])
        await context.eventually(
          'all lines',
          () => logs().catch(() => ''),
          (text) => text.split('\n').length === lines,
        )
        assert.equal(await logs('--tail=1'), `line ${lines - 1}`)
        assert.equal(await logs('--limit-bytes=1'), 'l')
        const [time = '', ...words] = (await logs('--tail=1', '--timestamps')).split(' ')
        assert.ok(!Number.isNaN(Date.parse(time)))
        assert.equal(words.join(' '), `line ${lines - 1}`)
        assert.equal((await logs('--since=24h')).split('\n').length, lines)
        await context.eventually(
          'nothing of the last second',
          () => logs('--since=1s'),
          (text) => text === '',
        )
      },
    },
  ],
}

/** What volumes refuse, and how the refusal is reported: subpaths with `..`, host paths of another type, configuration that is created late. */
import assert from 'node:assert/strict'
import { configMaps } from '#client/builtIn'
import { waitingReason } from '../../../support/podStates.ts'
import { type BehaviourGroup, table } from '../behaviour.ts'

const scratch = [{ name: 'scratch', emptyDir: {} }]
const forever = 'trap "exit 0" TERM; while true; do sleep 0.2; done'

const hostPaths = [
  { path: '/var/lib', type: 'File', message: "hostPath type check failed: /var/lib is not a file, it's a Directory" },
  { path: '/etc/hosts', type: 'Directory', message: "hostPath type check failed: /etc/hosts is not a directory, it's a File" },
  { path: '/var/none', type: 'Directory', message: "hostPath /var/none doesn't exist" },
  { path: '/dev/null', type: 'BlockDevice', message: "hostPath type check failed: /dev/null is not a block device, it's a CharDevice" },
]

export const volumesGroup: BehaviourGroup = {
  sig: 'skiff',
  title: 'Volumes',
  rows: ['KUB-11', 'STO-01', 'STO-02', 'STO-03'],
  behaviours: [
    ...table(hostPaths, ({ path, type, message }) => ({
      name: `host path ${path} as ${type} is refused`,
      run: async (context) => {
        const container = { volumeMounts: [{ name: 'host', mountPath: '/host' }] }
        const pod = await context.createPod({ script: 'true', container, spec: { volumes: [{ name: 'host', hostPath: { path, type } }] } })
        const told = await context.waitForEvent(pod.metadata.name ?? '', 'FailedMount')
        assert.equal(told.message, `MountVolume.SetUp failed for volume "host" : ${message}`)
      },
    })),
    {
      name: 'a subpath that a link leads out of the volume is refused, without a word about the node',
      run: async (context) => {
        const init = { name: 'init', image: 'skiff.test/busybox:1', volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] }
        const pod = await context.createPod({
          script: 'ls /mounted',
          container: { volumeMounts: [{ name: 'scratch', mountPath: '/mounted', subPath: 'link' }] },
          spec: { volumes: scratch, initContainers: [{ ...init, command: ['ln', '-s', '/etc', '/scratch/link'] }] },
        })
        const seen = await context.waitForPod(pod.metadata.name ?? '', 'is refused', (now) => waitingReason(now) === 'CreateContainerConfigError')
        const { message } = seen.status?.containerStatuses?.[0]?.state?.waiting ?? {}
        assert.equal(message, 'failed to prepare subPath for volumeMount "scratch" of container "main"')
      },
    },
    {
      name: 'a subpath is made for the group, stays the same for a container that starts again, and is no way to the rest',
      run: async (context) => {
        const env = [{ name: 'POD', value: 'mine' }]
        const volumeMounts = [{ name: 'scratch', mountPath: '/mounted', subPathExpr: '$(POD)/deep' }]
        const spec = { volumes: scratch, restartPolicy: 'Always', securityContext: { runAsUser: 1000, fsGroup: 2000 } }
        const pod = await context.readyPod({ script: `echo line >> /mounted/file; ${forever}`, container: { env, volumeMounts }, spec })
        const name = pod.metadata.name ?? ''
        assert.equal(await context.execText(name, "stat -c '%g %a' /mounted"), '2000 2777')
        await context.exec(name, ['sh', '-c', 'kill 1'])
        await context.waitForPod(name, 'runs again', ({ status }) => {
          const main = status?.containerStatuses?.[0]
          return main?.restartCount === 1 && main.state?.running !== undefined
        })
        await context.eventually(
          'both lines',
          () => context.execText(name, 'cat /mounted/file'),
          (text) => text === 'line\nline',
        )
      },
    },
    {
      name: 'configuration that comes late starts the pod; other volumes can be mounted inside it',
      run: async (context) => {
        const volumeMounts = [
          { name: 'config', mountPath: '/config' },
          { name: 'scratch', mountPath: '/config/inside' },
        ]
        const spec = { volumes: [...scratch, { name: 'config', configMap: { name: 'late' } }] }
        const pod = await context.createPod({
          script: 'cat /config/key && echo yes > /config/inside/file && ls -A /config/inside',
          container: { volumeMounts },
          spec,
        })
        const name = pod.metadata.name ?? ''
        const told = await context.waitForEvent(name, 'FailedMount')
        assert.equal(told.message, 'MountVolume.SetUp failed for volume "config" : configmap "late" not found')
        await context.create(configMaps, { metadata: { name: 'late' }, data: { key: 'value\n' } })
        await context.waitForPhase(name, 'Succeeded')
        assert.equal(await context.logs(name), 'value\nfile')
      },
    },
    {
      name: 'memory of a volume ends at the limit of the pod',
      run: async ({ outputOf }) => {
        const container = { volumeMounts: [{ name: 'memory', mountPath: '/memory' }], resources: { limits: { memory: '32Mi' } } }
        const spec = { volumes: [{ name: 'memory', emptyDir: { medium: 'Memory' } }] }
        assert.equal(await outputOf({ script: "df -k /memory | awk 'NR == 2 {print $2}'", container, spec }), String(32 * 1024))
      },
    },
    {
      name: 'recursive read-only mounts are refused where the runtime cannot make them',
      run: async (context) => {
        const mount = (recursiveReadOnly: string) => ({ volumeMounts: [{ name: 'scratch', mountPath: '/scratch', readOnly: true, recursiveReadOnly }] })
        assert.equal(await context.outputOf({ script: 'echo runs', container: mount('IfPossible'), spec: { volumes: scratch } }), 'runs')
        const pod = await context.createPod({ script: 'true', container: mount('Enabled'), spec: { volumes: scratch } })
        const seen = await context.waitForPod(pod.metadata.name ?? '', 'is refused', (now) => waitingReason(now) === 'CreateContainerConfigError')
        assert.match(seen.status?.containerStatuses?.[0]?.state?.waiting?.message ?? '', /but it is not supported by the runtime$/)
      },
    },
    {
      name: 'what a privileged container mounts is seen by others that asked for it, and not by those that did not',
      run: async (context) => {
        const [nodeName = ''] = context.nodes
        const path = `/var/lib/${context.unique('shared')}`
        const spec = { nodeName, volumes: [{ name: 'host', hostPath: { path, type: 'DirectoryOrCreate' } }] }
        const mount = (mountPropagation: string) => ({ volumeMounts: [{ name: 'host', mountPath: '/host', mountPropagation }] })
        const follower = await context.readyPod({ script: forever, container: mount('HostToContainer'), spec })
        const loner = await context.readyPod({ script: forever, container: mount('None'), spec })
        const script = `mkdir -p /host/m; mount -t tmpfs t /host/m; touch /host/m/file; trap "umount /host/m; exit 0" TERM; while true; do sleep 0.2; done`
        const privileged = { ...mount('Bidirectional'), securityContext: { privileged: true } }
        const master = await context.readyPod({ script, container: privileged, spec })
        const files = (pod: typeof loner) => context.execText(pod.metadata.name ?? '', 'ls /host/m 2>/dev/null || true')
        await context.eventually(
          'the mount',
          () => files(follower),
          (text) => text === 'file',
        )
        assert.equal(await files(loner), '')
        await context.kubectl(['delete', 'pod', master.metadata.name ?? ''])
        await context.eventually(
          'no mount',
          () => files(follower),
          (text) => text === '',
        )
      },
    },
  ],
}

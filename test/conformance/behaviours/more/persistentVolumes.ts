/** Volumes of the node behind claims: folders, disks, and devices as they are. Upstream: test/e2e/storage/persistent_volumes-local.go. */
import assert from 'node:assert/strict'
import { rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PersistentVolumeSpec } from '#api/gen/types/core.v1'
import { persistentVolumeClaims, persistentVolumes } from '#client/builtIn'
import { check, createExec } from '#host/exec'
import type { BehaviourGroup } from '../behaviour.ts'
import type { BehaviourContext } from '../context.ts'

const nodeAffinity = (nodeName: string): PersistentVolumeSpec['nodeAffinity'] => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [nodeName] }] }] },
})

/** A volume and its claim, bound to each other. Answers with the claim's name. */
async function boundClaim(context: BehaviourContext, spec: Partial<PersistentVolumeSpec>, annotations = {}): Promise<string> {
  const name = context.unique('local')
  const common = { accessModes: ['ReadWriteOnce'], storageClassName: '', volumeMode: spec.volumeMode ?? 'Filesystem' }
  const own = { ...common, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain', claimRef: { namespace: context.namespace, name } }
  await context.client.of(persistentVolumes).create({ metadata: { name, annotations }, spec: { ...own, ...spec } })
  context.cleanUp(() => context.client.of(persistentVolumes).delete({ name }))
  await context.create(persistentVolumeClaims, { metadata: { name }, spec: { ...common, volumeName: name, resources: { requests: { storage: '1Gi' } } } })
  await context.waitForObject(persistentVolumeClaims, name, 'is Bound', ({ status }) => status?.phase === 'Bound')
  return name
}

/** A disk of 64 MiB that all nodes of this machine see; taken away with the behaviour. */
async function loopDevice(context: BehaviourContext): Promise<string> {
  const file = join(tmpdir(), `${context.unique('disk')}.img`)
  const exec = createExec()
  await writeFile(file, '')
  context.cleanUp(() => rm(file, { force: true }))
  await truncate(file, 64 * 2 ** 20)
  const device = (await check(exec, 'losetup', ['--find', '--show', file])).trim()
  context.cleanUp(() => check(exec, 'losetup', ['--detach', device]))
  return device
}

const mounting = (claimName: string, readOnly = false) => ({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName, readOnly } }] })
const container = { volumeMounts: [{ name: 'data', mountPath: '/data' }] }

/** Deleted before what it uses is taken away. */
async function runAndDelete(context: BehaviourContext, pod: Parameters<BehaviourContext['outputOf']>[0]): Promise<string> {
  const name = context.unique('pod')
  const output = await context.outputOf({ ...pod, name })
  await context.kubectl(['delete', 'pod', name])
  return output
}

export const persistentVolumesGroup: BehaviourGroup = {
  sig: 'skiff',
  title: 'Volumes of the node behind claims',
  rows: ['KUB-11', 'STO-20'],
  behaviours: [
    {
      name: 'a folder of one node, written by one pod and read by the next, for the group of the pod and the group of the volume',
      run: async (context) => {
        const [nodeName = ''] = context.nodes
        const path = `/var/lib/${context.unique('folder')}`
        const make = { script: 'true', container: { volumeMounts: [{ name: 'f', mountPath: '/f' }] } }
        await context.runPod({ ...make, spec: { nodeName, volumes: [{ name: 'f', hostPath: { path, type: 'DirectoryOrCreate' } }] } })
        const claim = await boundClaim(context, { local: { path }, nodeAffinity: nodeAffinity(nodeName) }, { 'pv.beta.kubernetes.io/gid': '777' })
        const securityContext = { runAsUser: 1000, fsGroup: 2000 }
        const script = "echo content > /data/file && stat -c '%g %a' /data /data/file; id -G"
        const written = await runAndDelete(context, { script, container, spec: { ...mounting(claim), securityContext } })
        assert.equal(written, '2000 2775\n2000 644\n0 777 2000')
        const read = 'cat /data/file; touch /data/no 2>/dev/null || echo refused'
        assert.equal(await runAndDelete(context, { script: read, container, spec: mounting(claim, true) }), 'content\nrefused')
      },
    },
    {
      name: 'a disk is formatted once, mounted once, and shared by the pods of the node',
      run: async (context) => {
        const [nodeName = ''] = context.nodes
        const claim = await boundClaim(context, { local: { path: await loopDevice(context), fsType: 'ext4' }, nodeAffinity: nodeAffinity(nodeName) })
        const spec = mounting(claim)
        const first = await context.readyPod({ script: 'echo kept > /data/file; trap "exit 0" TERM; while true; do sleep 0.2; done', container, spec })
        const script = 'cat /data/file; awk \'$2 == "/data" {print $3}\' /proc/mounts'
        assert.equal(await runAndDelete(context, { script, container, spec }), 'kept\next4')
        await context.kubectl(['delete', 'pod', first.metadata.name ?? ''])
        assert.equal(await runAndDelete(context, { script: 'cat /data/file', container, spec }), 'kept')
      },
    },
    {
      name: 'a disk as a device, for writing and only for reading',
      run: async (context) => {
        const [nodeName = ''] = context.nodes
        const device = await loopDevice(context)
        const claim = await boundClaim(context, { local: { path: device }, volumeMode: 'Block', nodeAffinity: nodeAffinity(nodeName) })
        const devices = { volumeDevices: [{ name: 'data', devicePath: '/dev/disk' }] }
        const write = { script: 'echo raw | dd of=/dev/disk conv=fsync 2>/dev/null; dd if=/dev/disk bs=3 count=1 2>/dev/null', container: devices }
        assert.equal(await runAndDelete(context, { ...write, spec: mounting(claim) }), 'raw')
        const read = { script: 'dd if=/dev/disk bs=3 count=1 2>/dev/null; echo; echo x 2>/dev/null >/dev/disk || echo refused', container: devices }
        assert.equal(await runAndDelete(context, { ...read, spec: mounting(claim, true) }), 'raw\nrefused')
        const wrong = await context.createPod({ script: 'true', container, spec: mounting(claim) })
        const { message } = await context.waitForEvent(wrong.metadata.name ?? '', 'FailedMount')
        assert.match(message ?? '', /: volume data has volumeMode Block, but is specified in volumeMounts$/)
      },
    },
    {
      name: 'a pod bound to a node that its volume does not reach, or before its claim is bound, gets an event',
      run: async (context) => {
        const [first = '', second = ''] = context.nodes
        const claim = await boundClaim(context, { local: { path: '/var/lib' }, nodeAffinity: nodeAffinity(first) })
        const lost = await context.createPod({ script: 'true', container, spec: { ...mounting(claim), nodeName: second } })
        const told = await context.waitForEvent(lost.metadata.name ?? '', 'FailedMount')
        assert.equal(told.message, `MountVolume.NodeAffinity check failed for volume "${claim}" : no matching NodeSelectorTerms`)
        const early = await context.createPod({ script: 'true', container, spec: { ...mounting('later'), nodeName: first } })
        const { message } = await context.waitForEvent(early.metadata.name ?? '', 'FailedMount')
        const reason = `error processing PVC ${context.namespace}/later: failed to fetch PVC from API server: persistentvolumeclaims "later" not found`
        assert.equal(message, `Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: ${reason}`)
      },
    },
  ],
}

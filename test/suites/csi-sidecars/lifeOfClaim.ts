/** A claim from its creation to the end of its volume: provisioned, attached, mounted, expanded, snapshotted, restored, cloned, deleted. */
import assert from 'node:assert/strict'
import { eventually, type LocalCluster } from '../../e2e/support/localCluster.ts'
import { step } from '../support/kubectl.ts'
import { applyAll } from './modules.ts'

interface Life {
  /** Part of all names. */
  readonly round: string
  /** Part of the steps' names. */
  readonly controllers: string
  readonly image: string
  readonly driver: string
  /** The host name of the provisioner, which is part of its events. */
  readonly provisioner: RegExp
}

const waitMs = 120_000
const timeout = '--timeout=110s'
const small = '16Mi'
const large = '32Mi'

/** The StorageClass and the VolumeSnapshotClass are `suite`. */
export async function lifeOfClaim(cluster: LocalCluster, { round, controllers, image, driver, provisioner }: Life): Promise<void> {
  const inPod = (of: string, script: string) => cluster.must(['exec', of, '--', 'sh', '-c', script])
  const ready = (of: string) => cluster.must(['wait', '--for=condition=Ready', `pod/${of}`, timeout], waitMs)
  const field = (of: string, template: string) => cluster.must(['get', ...of.split(' '), '-o', `jsonpath=${template}`])
  const becomes = (what: string, ask: () => Promise<string>, value: string) => eventually(what, waitMs, ask, (found) => found === value)
  const named = (of: string) => `${of}-${round}`
  const [source, restored, clone, reader] = [named('source'), named('restored'), named('clone'), named('reader')]

  await step(`STO-08 ${controllers} provision and attach the volume of a claim, which a pod mounts`, async () => {
    await applyAll(cluster, claim(source, small), pod(source, image, [source]))
    await ready(source)
    await inPod(source, `echo written > /${source}/file`)
    const [volume = '', by] = (await field('pv', '{.items[*].metadata.name} {.items[*].spec.csi.driver}')).split(' ')
    const attachments = await field('volumeattachments', '{.items[*].spec.source.persistentVolumeName} {.items[*].status.attached}')
    assert.deepEqual([by, attachments], [driver, `${volume} true`])
    const selector = `reason=ProvisioningSucceeded,involvedObject.name=${source}`
    assert.match(await field(`events --field-selector ${selector}`, '{.items[*].source.component}'), provisioner)
  })

  await step(`STO-08 ${controllers} expand the volume while the pod runs`, async () => {
    await cluster.must(['patch', 'pvc', source, '--type=merge', '-p', `{"spec":{"resources":{"requests":{"storage":"${large}"}}}}`])
    await becomes('the size of the volume', () => field('pv', '{.items[*].spec.capacity.storage}'), large)
    // The kubelet reads the claims of a pod when it syncs the pod, which it does about once a minute without a change.
    await cluster.must(['annotate', 'pod', source, 'test/sync=now'])
    await becomes('the size of the claim', () => field(`pvc ${source}`, '{.status.capacity.storage}'), large)
  })

  await step(`STO-08 ${controllers} snapshot, restore and clone the volume`, async () => {
    const spec = { volumeSnapshotClassName: 'suite', source: { persistentVolumeClaimName: source } }
    await applyAll(cluster, { apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot', metadata: { name: source }, spec })
    await cluster.must(['wait', '--for=jsonpath={.status.readyToUse}=true', `volumesnapshot/${source}`, timeout], waitMs)
    await inPod(source, `echo later > /${source}/file`)
    const ofSnapshot = claim(restored, large, { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: source })
    const ofClaim = claim(clone, large, { kind: 'PersistentVolumeClaim', name: source })
    await applyAll(cluster, ofSnapshot, ofClaim, pod(reader, image, [restored, clone]))
    await ready(reader)
    assert.equal(await inPod(reader, `cat /${restored}/file /${clone}/file`), 'written\nlater')
  })

  await step(`STO-08 ${controllers} delete the snapshot and the volumes, and nothing of them is left`, async () => {
    await cluster.must(['delete', 'pod', source, reader, timeout], waitMs)
    await cluster.must(['delete', 'volumesnapshot', source, timeout], waitMs)
    await cluster.must(['delete', 'pvc', source, restored, clone, timeout], waitMs)
    await becomes('the end of all volumes', () => cluster.must(['get', 'pv,volumeattachments,volumesnapshotcontents', '-o', 'name']), '')
  })
}

function claim(name: string, storage: string, dataSource?: object): object {
  const spec = { storageClassName: 'suite', accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...(dataSource ? { dataSource } : {}) }
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec }
}

/** Each claim is mounted in a directory of its name. */
function pod(name: string, image: string, claims: readonly string[]): object {
  const container = { name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'] }
  const volumeMounts = claims.map((one) => ({ name: one, mountPath: `/${one}` }))
  const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }))
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers: [{ ...container, volumeMounts }], volumes } }
}

/**
 * The flags of the controllers for volumes (L5). Upstream: cmd/kube-controller-manager/app/options/persistentvolumebindercontroller.go,
 * attachdetachcontroller.go (v1.36).
 */
import type { Pod } from '#api/gen/types/core.v1'
import { parseYaml } from '#api/machinery/yaml'
import type { ControllerOptions } from '#controllers/index'
import { duration, type FlagValues, flag, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { readNamed, usable } from '../../apiserver/options/namedFiles.ts'
import { type OptionContext, optionGroup } from '../../apiserver/options/optionGroup.ts'

const flags = {
  'attach-detach-reconcile-sync-period': duration('How often what nodes have attached is looked at without cause', 60_000),
  'disable-attach-detach-reconcile-sync': flag('Do not look at what nodes have attached without cause'),
  'disable-force-detach-on-timeout': flag('Never detach what may still be mounted, however long its node is silent'),
  'enable-dynamic-provisioning': flag('Tell drivers to make the volumes that claims ask for', true),
  'enable-hostpath-provisioner': flag('Make directories of this machine for classes of kubernetes.io/host-path: for trying things out on one machine'),
  'pv-recycler-increment-timeout-nfs': whole('How many seconds more a pod may take for each Gi of an NFS volume that it empties', 30),
  'pv-recycler-minimum-timeout-hostpath': whole('How many seconds a pod may take at least to empty a volume of type hostPath', 60),
  'pv-recycler-minimum-timeout-nfs': whole('How many seconds a pod may take at least to empty an NFS volume', 300),
  'pv-recycler-pod-template-filepath-hostpath': text('A pod that empties volumes of type hostPath: its first volume becomes the one to empty'),
  'pv-recycler-pod-template-filepath-nfs': text('A pod that empties NFS volumes: its first volume becomes the one to empty'),
  'pv-recycler-timeout-increment-hostpath': whole('How many seconds more a pod may take for each Gi of a volume of type hostPath that it empties', 30),
  'pvclaimbinder-sync-period': duration('How often volumes and claims are looked at without cause', 15_000),
} as const

type Values = FlagValues<typeof flags>

export const volumeOptions = optionGroup({
  name: 'Volumes',
  flags,
  async settings(values: Values, context: OptionContext): Promise<Pick<ControllerOptions, 'volumeBinding' | 'attaching'>> {
    const period = values['pvclaimbinder-sync-period']
    if (period <= 0) throw new UsageError([`pvclaimbinder-sync-period must be greater than 0, but got ${period} ms`])
    return {
      attaching: {
        syncPeriodMs: values['disable-attach-detach-reconcile-sync'] ? 0 : values['attach-detach-reconcile-sync-period'],
        neverForce: values['disable-force-detach-on-timeout'],
      },
      volumeBinding: {
        syncPeriodMs: period,
        dynamicProvisioning: values['enable-dynamic-provisioning'],
        provisionHostPaths: values['enable-hostpath-provisioner'],
        recycleHostPath: {
          minimumSeconds: values['pv-recycler-minimum-timeout-hostpath'],
          secondsPerGi: values['pv-recycler-timeout-increment-hostpath'],
          template: await podTemplate(values['pv-recycler-pod-template-filepath-hostpath'], context),
        },
        recycleNfs: {
          minimumSeconds: values['pv-recycler-minimum-timeout-nfs'],
          secondsPerGi: values['pv-recycler-increment-timeout-nfs'],
          template: await podTemplate(values['pv-recycler-pod-template-filepath-nfs'], context),
        },
      },
    }
  },
})

async function podTemplate(path: string, context: OptionContext): Promise<Pod | undefined> {
  const content = await readNamed(path, context)
  if (content === undefined) return undefined
  const pod = usable(() => parseYaml(content)) as Partial<Pod> | null
  if (pod?.kind !== 'Pod' || !pod.metadata || !pod.spec) throw new UsageError([`${path} holds no Pod: a recycler's template needs kind, metadata and spec`])
  if ((pod.spec.volumes ?? []).length === 0) throw new UsageError([`${path}: the recycler's pod does not contain any volume(s)`])
  return pod as Pod
}

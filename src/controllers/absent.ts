/** Controllers of upstream that are not here (L3): to turn them off is fine, to ask for them is not, except where upstream would not run them either. */

export interface AbsentController {
  readonly name: string
  readonly aliases: readonly string[]
  /** Why it cannot run; undefined: upstream skips it, too, cloud providers' as well as those behind gates that are off. */
  readonly reason?: string | undefined
}

const skipped = (name: string, ...aliases: string[]): AbsentController => ({ name, aliases })

export const absentControllers: readonly AbsentController[] = [
  { name: 'selinux-warning-controller', aliases: [], reason: 'SELinux labels of volumes are not compared' },
  skipped('node-route-controller', 'route'),
  skipped('cloud-node-lifecycle-controller', 'cloud-node-lifecycle'),
  skipped('resourcepoolstatusrequest-controller'),
  skipped('storageversion-garbage-collector-controller', 'storage-version-gc'),
]

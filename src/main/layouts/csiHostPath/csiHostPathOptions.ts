/** What the host path driver of a local cluster needs (L5). */
import type { Client } from '#client/client'
import type { AddonOptions } from '../clusterAddon.ts'

export const csiHostPathUser = 'system:skiff:csi-hostpath'

export interface CsiHostPathOptions extends AddonOptions {
  /** With the identity of the driver's controllers. */
  readonly controllerClient: Client
}

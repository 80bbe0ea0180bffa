/** All controllers, in the order in which they start (L3). */
import type { ControllerDescriptor } from './framework/controller.ts'
import { replicaSet } from './replicaSet/replicaSet.ts'

export const controllers: readonly ControllerDescriptor[] = [replicaSet]

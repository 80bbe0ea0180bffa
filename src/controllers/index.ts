/** All controllers, in the order in which they start (L3). */

import { deployment } from './deployment/deployment.ts'
import type { ControllerDescriptor } from './framework/controller.ts'
import { replicaSet } from './replicaSet/replicaSet.ts'

export const controllers: readonly ControllerDescriptor[] = [deployment, replicaSet]

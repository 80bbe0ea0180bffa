/** Server-side apply (L3): the endpoint's part; merging and ownership are api/machinery/managedFields. */
import { StatusError } from '#api/machinery/status'
import type { UpdateResult } from '../registry/update.ts'
import type { RequestBody } from '../request.ts'
import type { Scope } from './scope.ts'

export async function applyConfiguration(_scope: Scope, _body: RequestBody): Promise<UpdateResult> {
  throw new StatusError('UnsupportedMediaType', 'server-side apply is not served yet')
}

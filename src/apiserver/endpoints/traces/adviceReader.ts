/** What advice may name (L3): objects that the user who reads it may read. */
import type { Frozen, GroupResource, KubeObject } from '#api/machinery/meta'
import type { Authorizer } from '../../authz/authorizer.ts'
import { authorize } from '../../authz/union.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { UserInfo } from '../../core/request.ts'

export interface AdviceReader {
  /** Undefined: there is none, or the user may not get it. */
  get<T extends KubeObject>(resource: GroupResource, namespace: string, name: string): Promise<Frozen<T> | undefined>
  /** Undefined: the user may not list them. */
  list<T extends KubeObject>(resource: GroupResource, namespace?: string): Promise<readonly Frozen<T>[] | undefined>
}

export function adviceReader(reader: Pick<ObjectReader, 'get' | 'list'>, authorizers: readonly Authorizer[], user: UserInfo): AdviceReader {
  const may = async (verb: string, { group, resource }: GroupResource, namespace: string, name: string) => {
    const target = { isResourceRequest: true, path: '', apiGroup: group, apiVersion: '', resource, subresource: '', namespace, name }
    return (await authorize(authorizers, { ...target, user, verb })).decision === 'allow'
  }
  return {
    get: async (resource, namespace, name) => ((await may('get', resource, namespace, name)) ? reader.get(resource, namespace, name) : undefined),
    list: async (resource, namespace = '') => ((await may('list', resource, namespace, '')) ? reader.list(resource, namespace || undefined) : undefined),
  }
}

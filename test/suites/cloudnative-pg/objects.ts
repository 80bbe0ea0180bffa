/** A Cluster of CloudNativePG, and as much as the suite reads of what it leads to. */
import { postgresUser } from '../../e2e/support/postgres/postgresImage.ts'
import type { ApiObject } from '../support/kubectl.ts'
import { databaseImage } from './images.ts'

export interface Cluster extends ApiObject {
  readonly spec: {
    readonly enablePDB?: boolean
    readonly bootstrap?: { readonly initdb?: { readonly database?: string } }
    readonly postgresql?: { readonly parameters?: Readonly<Record<string, string>> }
  }
  readonly status?: ApiObject['status'] & { readonly phase?: string; readonly currentPrimary?: string; readonly readyInstances?: number }
}

export interface Pod extends ApiObject {
  readonly spec: { readonly nodeName?: string }
}

/** Debian's packages have PostgreSQL's just-in-time compiler, whose library the image leaves out. */
const parameters = { jit: 'off', shared_buffers: '32MB' }

export function cluster(name: string, spec: object = {}): object {
  const account = { postgresUID: postgresUser, postgresGID: postgresUser }
  const usual = { instances: 2, imageName: databaseImage, ...account, storage: { size: '1Gi' }, postgresql: { parameters } }
  return { apiVersion: 'postgresql.cnpg.io/v1', kind: 'Cluster', metadata: { name, namespace: 'default' }, spec: { ...usual, ...spec } }
}

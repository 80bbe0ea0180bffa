/** The settings of authorization (L3): the ordered list of authorizers, and the file that it is read from. */
import type { HttpTransportOptions } from '#client/httpTransport'
import type { ConfigFile } from '../core/configFile.ts'
import type { AbacPolicy } from './abac.ts'
import type { AuthorizationMode } from './configuration/types.ts'
import type { ValidatedAuthorizer } from './configuration/validation.ts'

/** An authorizer of the list; a webhook with its connection. */
export interface ConfiguredAuthorizer extends ValidatedAuthorizer {
  readonly transport?: Omit<HttpTransportOptions, 'clock'> | undefined
}

export interface AuthorizationSettings {
  /** They follow the privileged group system:masters. */
  readonly authorizers: readonly ConfiguredAuthorizer[]
  /** Policies of the authorizer type ABAC. */
  readonly policies?: readonly AbacPolicy[] | undefined
  /** The file with the list, which is reloaded when it changes; absent: flags. */
  readonly file?: AuthorizationFile | undefined
}

export interface AuthorizationFile {
  readonly source: ConfigFile
  readonly content: string
  /** @param required types that must stay. @throws Error with every fault of the new content */
  read(content: string, required: readonly AuthorizationMode[]): Promise<readonly ConfiguredAuthorizer[]>
}

/** As in kubeadm. */
export const defaultAuthorization: AuthorizationSettings = {
  authorizers: [
    { type: 'Node', name: 'node', conditions: [] },
    { type: 'RBAC', name: 'rbac', conditions: [] },
  ],
}

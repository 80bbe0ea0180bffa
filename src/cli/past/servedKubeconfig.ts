/** The kubeconfig of a server on localhost that shows a state of the past (L4): a file of its owner alone. */
import fs from 'node:fs/promises'
import path from 'node:path'
import { toYaml } from '#api/machinery/yaml'

export interface ServedApi {
  readonly url: string
  readonly token: string
  /** PEM. */
  readonly ca: string
}

/** @returns the path of the file, in the directory */
export async function writeKubeconfigOf(
  directory: string,
  { url, token, ca }: ServedApi,
  { name, namespace }: { readonly name: string; readonly namespace: string },
): Promise<string> {
  const file = path.join(directory, 'kubeconfig')
  const text = toYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace } }],
    'current-context': name,
  })
  await fs.writeFile(file, text, { mode: 0o600 })
  return file
}

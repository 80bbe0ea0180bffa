/** The images of the suite: the operator's, which has the name that its manifest asks for, and that of its databases. */
import fs from 'node:fs'
import path from 'node:path'
import { ociTar } from '#kubelet/images/ociTar'
import type { LocalCluster } from '../../e2e/support/localCluster.ts'
import { postgresImage, postgresVersion } from '../../e2e/support/postgres/postgresImage.ts'

const { WORK = '' } = process.env
const processor = process.arch === 'x64' ? 'amd64' : process.arch

/** The operator reads the version of PostgreSQL from the tag. */
export const databaseImage = `skiff.internal/postgresql:${postgresVersion()}`

/** @throws PackagesMissing */
export async function loadImages(cluster: LocalCluster, manifest: string): Promise<void> {
  const tars = [operatorImage(manifest), await postgresImage(databaseImage, () => ['postgres'])]
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, ...tars])
  if (code !== 0) throw new Error(stderr)
}

/** As in upstream's image, the program has the name of a processor, and a link leads to it: the operator looks for the programs of all processors. */
function operatorImage(manifest: string): string {
  const name = /^\s*image: (\S+)/m.exec(manifest)?.[1]
  if (name === undefined) throw new Error('the manifest names no image')
  const program = `operator/manager_${processor}`
  const data = fs.readFileSync(path.join(WORK, 'bin/manager'))
  const tar = path.join(WORK, 'operator.tar')
  const files = [
    { path: program, type: 'file', mode: 0o755, data },
    { path: 'manager', type: 'symlink', target: program },
  ] as const
  fs.writeFileSync(tar, ociTar({ names: [name], entrypoint: ['/manager'], workingDir: '/', files }))
  return tar
}

/** An image that is loaded cannot be pulled. */
export const withoutPulling = (manifest: string) => manifest.replaceAll('imagePullPolicy: Always', 'imagePullPolicy: IfNotPresent')

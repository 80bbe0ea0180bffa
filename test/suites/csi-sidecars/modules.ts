/** Files of the modules that `run` lists in WORK/modules, and images of single programs. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { ociTar } from '#kubelet/images/ociTar'
import type { LocalCluster } from '../../e2e/support/localCluster.ts'

const { WORK = '' } = process.env

/** A file or folder of a module of kubernetes-csi. */
export function fileOf(module: string, file: string): string {
  const lines = fs.readFileSync(path.join(WORK, 'modules'), 'utf8').split('\n')
  const line = lines.find((one) => new RegExp(`^github.com/kubernetes-csi/${module}(/v\\d+)? `).test(one))
  assert.ok(line, `the module ${module} is there`)
  return path.join(line.split(' ')[1] ?? '', file)
}

export interface ProgramImage {
  readonly name: string
  /** The path of a program without libraries. */
  readonly program: string
}

export async function loadImages(cluster: LocalCluster, images: readonly ProgramImage[]): Promise<void> {
  const tars = images.map(({ name, program }) => {
    const base = path.basename(program)
    const entry = { path: base, type: 'file', mode: 0o755, data: fs.readFileSync(program) } as const
    const tar = path.join(cluster.dir, `${base}.tar`)
    fs.writeFileSync(tar, ociTar({ names: [name], entrypoint: [`/${base}`], files: [entry] }))
    return tar
  })
  const { code, stderr } = await cluster.skiff(['image', 'load', '--name', cluster.name, ...tars])
  assert.equal(code, 0, stderr)
}

export function applyAll(cluster: LocalCluster, ...items: readonly object[]): Promise<string> {
  return cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }), ['apply', '-f', '-'])
}

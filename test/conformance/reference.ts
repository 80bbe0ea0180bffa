/**
 * Finds upstream's reference files of v1.36, which are no part of the project: shared/reference next to the root, or one folder further up (a work
 * tree). Tests that need a missing file are skipped, with its name.
 */
import fs from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')

/** The path of a reference file or folder, undefined when it is not on this machine. */
export function reference(name: string): string | undefined {
  return ['..', '../..'].map((up) => path.join(root, up, 'shared/reference', name)).find((candidate) => fs.existsSync(candidate))
}

/** The options for `node:test` of a test that needs the file. */
export function skipWithout(file: string | undefined, name: string): { skip: string | false } {
  return { skip: file === undefined ? `${name} is not next to the project` : false }
}

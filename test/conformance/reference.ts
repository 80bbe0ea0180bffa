/**
 * Finds upstream's reference files of v1.36, which stand beside the project and are no part of it: shared/reference next to the root, or one
 * folder further up (a work tree). Tests that need them are skipped by name where they are missing.
 */
import fs from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')

/** The path of a reference file or folder, undefined when it is not on this machine. */
export function reference(name: string): string | undefined {
  return ['..', '../..'].map((up) => path.join(root, up, 'shared/reference', name)).find((candidate) => fs.existsSync(candidate))
}

/** What `node:test` is told about a test that cannot run without the file. */
export function skipWithout(file: string | undefined, name: string): { skip: string | false } {
  return { skip: file === undefined ? `${name} is not beside the project` : false }
}

/**
 * The CEL environment that Kubernetes' rules and policies run in (L1): the language with the libraries that v1.36 enables for all of
 * its uses, to be extended with variables. What single uses add (jsonpatch for mutating policies, cel.bind for device selectors) is
 * passed as further libraries. Upstream: apiserver/pkg/cel/environment/base.go, pkg/apis/cel/config.go (v1.36).
 */
import type { Environment } from '#cel/environment'
import { twoVariableComprehensions } from '#cel/library/comprehensions'
import { lists, sets } from '#cel/library/lists'
import { optionals } from '#cel/library/optionals'
import { strings } from '#cel/library/strings'
import { standardEnvironment } from '#cel/standardEnvironment'
import { authzLibrary } from './authz.ts'
import { listsLibrary, regexLibrary } from './collections.ts'
import { costsLibrary } from './costs.ts'
import { formatLibrary } from './format.ts'
import { cidrLibrary, ipLibrary } from './ip.ts'
import { quantityLibrary } from './quantity.ts'
import { semverLibrary } from './semver.ts'
import { urlLibrary } from './url.ts'

/** The most that one evaluation may cost: about a tenth of a second. */
export const perCallLimit = 1_000_000

/** The most that all rules of one request may cost together: about a second. */
export const requestCostBudget = 10_000_000

export const kubernetesEnvironment: Environment = standardEnvironment.extend({
  homogeneousLiterals: true,
  validateLiterals: true,
  libraries: [
    urlLibrary,
    regexLibrary,
    listsLibrary,
    authzLibrary,
    optionals,
    quantityLibrary,
    strings,
    sets,
    ipLibrary,
    cidrLibrary,
    formatLibrary,
    twoVariableComprehensions,
    semverLibrary,
    lists,
    costsLibrary,
  ],
})

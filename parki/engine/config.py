"""Names that tie the engine to parki: kernels, environment variables, log, ways to install what is missing."""

NAME = "parki"  # of this engine beside upstream PyKokkos, of the cache's folder, and at the head of messages
LOGGER = "parki.engine"
KERNELS = "parki.kernels"  # the package whose files are read as kernels
KERNELS_FOLDER = "kernels/"  # how the places of these files begin in messages

# Environment variables
ARCH = "PARKI_ARCH"  # argument of the compiler's -march
CACHE = "PARKI_CACHE"  # the earlier name of CACHE_DIR
CACHE_DIR = "PARKI_CACHE_DIR"  # folder of compiled kernels
COMPILE_TIMEOUT = "PARKI_COMPILE_TIMEOUT"  # seconds that one compilation may take
CXX = "PARKI_CXX"  # the compiler
DEBUG = "PARKI_DEBUG"  # words: check, asan
ENGINE = "PARKI_ENGINE"  # this engine, or pykokkos
QUIET = "PARKI_QUIET"  # 1: nothing is shown while kernels are compiled
SIM_ORDER = "PARKI_SIM_ORDER"  # in which order the simulated GPU runs its threads
SIM_SEED = "PARKI_SIM_SEED"  # of the random order
VECTOR_BYTES = "PARKI_VECTOR_BYTES"  # width of vectors

# Ways to install what is missing
INSTALL_COMPILER = "pip install 'parki[compiler]'"
INSTALL_CUDA_12 = 'pip install "parki[cuda12]"'
INSTALL_CUDA_13 = 'pip install "parki[cuda13]"'
INSTALL_ROCM = 'pip install "parki[rocm]"'

"""Names that tie the engine to parki: kernels, environment variables, log, commands that install missing parts."""

NAME = "parki"  # name of this engine beside upstream PyKokkos, of the cache's folder, and at the head of messages
LOGGER = "parki.engine"
KERNELS = "parki.kernels"  # package whose files are read as kernels
KERNELS_FOLDER = "kernels/"  # prefix of these files' paths in messages

# Environment variables
ARCH = "PARKI_ARCH"  # argument of the compiler's -march
CACHE = "PARKI_CACHE"  # earlier name of CACHE_DIR
CACHE_DIR = "PARKI_CACHE_DIR"  # folder of compiled kernels
COMPILE_TIMEOUT = "PARKI_COMPILE_TIMEOUT"  # limit of one compilation, in seconds
CXX = "PARKI_CXX"  # C++ compiler
DEBUG = "PARKI_DEBUG"  # words, separated by commas: 1 or check, asan, source
ENGINE = "PARKI_ENGINE"  # name of the engine: parki or pykokkos
QUIET = "PARKI_QUIET"  # 1: show nothing while kernels are compiled
SIM_ORDER = "PARKI_SIM_ORDER"  # order in which the simulated GPU runs its threads
SIM_SEED = "PARKI_SIM_SEED"  # seed of the random order
VECTOR_BYTES = "PARKI_VECTOR_BYTES"  # width of vectors, in bytes

# Commands that install missing parts
INSTALL_COMPILER = "pip install 'parki[compiler]'"
INSTALL_CUDA_12 = 'pip install "parki[cuda12]"'
INSTALL_CUDA_13 = 'pip install "parki[cuda13]"'
INSTALL_ROCM = 'pip install "parki[rocm]"'

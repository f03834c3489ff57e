# What `cmake --install` puts where, in the components that scripts/packages.sh makes packages of.
include(GNUInstallDirs)
set(packaging ${PROJECT_SOURCE_DIR}/packaging)
install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT weft)
install(TARGETS weft-nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT weft-nccl)
install(FILES ${PROJECT_SOURCE_DIR}/src/adapt/nccl/hashes.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  RENAME weft_hashes.h COMPONENT weft-nccl)
install(FILES ${packaging}/weft.service DESTINATION lib/systemd/system COMPONENT weft)
install(FILES ${packaging}/weft-agent.service DESTINATION lib/systemd/system COMPONENT weft-agent)
install(FILES ${packaging}/weft.sysusers DESTINATION lib/sysusers.d RENAME weft.conf COMPONENT weft)
install(FILES ${packaging}/serve.env ${packaging}/serve.yaml
  DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/weft COMPONENT weft)
install(FILES ${packaging}/prometheus/prometheus.yml ${packaging}/prometheus/weft.rules.yml
              ${packaging}/prometheus/grafana.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/weft COMPONENT weft)
install(FILES ${packaging}/agent.env DESTINATION ${CMAKE_INSTALL_SYSCONFDIR}/weft COMPONENT weft-agent)
install(FILES ${PROJECT_SOURCE_DIR}/docs/install.md ${PROJECT_SOURCE_DIR}/docs/serve.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/weft COMPONENT weft)
set(manuals ${PROJECT_BINARY_DIR}/man)
install(DIRECTORY ${manuals}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT weft FILES_MATCHING PATTERN "*.1"
  PATTERN bash EXCLUDE PATTERN zsh EXCLUDE PATTERN fish EXCLUDE)
install(FILES ${manuals}/bash/weft DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT weft)
install(FILES ${manuals}/zsh/_weft DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT weft)
install(FILES ${manuals}/fish/weft.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT weft)
foreach(component weft weft-agent weft-nccl)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${component}
    RENAME copyright COMPONENT ${component})
endforeach()
